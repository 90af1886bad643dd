#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Converts the series between its three forms: patches, Linux trees, mails.

usage: series.py tree DIR            make or update the tree of a base (--linux: pristine source)
       series.py mail DIR            write DIR/TOPIC/*.patch, letter first (--topic: one topic)
       series.py export              write patches and new files back from a tree
       series.py compare BASE BASE   compare two bases: git range-diff of their trees

patches/README.md describes the patches, store.py reads and writes them, mail.py the mails.
"""

import argparse
from pathlib import Path

import mail
import store


def main() -> None:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description="patches, Linux trees and mails from one another")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    tree = commands.add_parser("tree", help="make or update the tree of a base")
    mails = commands.add_parser("mail", help="write the mails of all topics")
    export = commands.add_parser("export", help="write patches and new files back from a tree")
    compare = commands.add_parser("compare", help="compare the trees of two bases: git range-diff")
    for command in tree, mails, export:
        command.add_argument("--base", default="6.12", help="version of Linux (%(default)s)")
    for command in tree, mails:
        command.add_argument("out", type=Path, help="folder to write")
    for command in mails, export:
        command.add_argument("--tree", type=Path, help="git tree to read (build/BASE/linux)")
    tree.add_argument(
        "--linux", type=Path, help="unpatched source: a folder or an archive (Debian's)"
    )
    mails.add_argument("--topic", help="write only this topic")
    compare.add_argument("bases", nargs=2, metavar="BASE")
    args, options = parser.parse_known_args()
    if options and args.command != "compare":
        parser.error(f"no such option: {options[0]}")

    series = store.Store()
    if args.command == "compare":
        trees = [store.TOP / "build" / series.base(base).name / "linux" for base in args.bases]
        store.compare(trees, options)
        return
    if args.command == "tree":
        source = args.linux or Path(f"/usr/src/linux-source-{args.base}.tar.xz")
        store.make_tree(series, args.base, source.resolve(), args.out.resolve())
        return
    series.base(args.base)
    linux = (args.tree or store.TOP / "build" / args.base / "linux").resolve()
    if args.command == "mail":
        mail.write(series, args.base, linux, args.out.resolve(), args.topic)
    else:
        store.export(series, args.base, linux)


if __name__ == "__main__":
    main()
