#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0
"""Converts the series between its three forms: patches, Linux trees, mails.

usage: series.py tree DIR     make or update the tree of a base (--linux: pristine source)
       series.py export       write patches and new files back from a tree
       series.py mail DIR     write DIR/TOPIC/*.patch of the newest base, letter first

patches/README.md describes the patches, store.py reads and writes them, mail.py the mails.
"""

import argparse
from pathlib import Path

import mail
from store import TOP, Store, Tree, export, make_tree


def main() -> None:
    """Runs the command line."""
    store = Store()
    parser = argparse.ArgumentParser(description="patches, Linux trees and mails from one another")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    tree = commands.add_parser("tree", help="make or update the tree of a base")
    back = commands.add_parser("export", help="write patches and new files back from a tree")
    mails = commands.add_parser("mail", help="write the mails of all topics, for the newest base")
    mails.set_defaults(base=store.newest)
    for command in tree, back:
        command.add_argument("--base", default="6.12", help="version of Linux (%(default)s)")
    for command in tree, mails:
        command.add_argument("out", type=Path, help="folder to write")
    tree.add_argument("--linux", type=Path, help="unpatched source: a folder or Debian's archive")
    mails.add_argument("--topic", help="write only this topic")
    args = parser.parse_args()

    if args.command == "tree":
        source = args.linux or Path(f"/usr/src/linux-source-{args.base}.tar.xz")
        make_tree(Tree(store, args.base, args.out.resolve()), source.resolve())
        return
    linux = Tree(store, args.base, TOP / "build" / args.base / "linux")
    if args.command == "export":
        export(linux)
    else:
        mail.write(linux, args.out.resolve(), args.topic)


if __name__ == "__main__":
    main()
