# SPDX-License-Identifier: GPL-2.0
"""Random names, mangled by Rust's scheme v0 ("v0 Symbol Format" in the book of rustc)."""

import random
import string
from collections.abc import Callable

DIGITS = string.digits + string.ascii_lowercase + string.ascii_uppercase
WORDS = ("a", "_x", "main", "core", "9a", "Vec", "gödel", "α_ω", "铁锈", "🤦", "ρυστ", "føø_bår")


def base_62(number: int) -> str:
    """A number of the scheme: 0 is _, others are one less in base 62, then _."""
    if not number:
        return "_"
    text, number = "_", number - 1
    while True:
        number, digit = divmod(number, 62)
        text = DIGITS[digit] + text
        if not number:
            return text


class Mangler:
    """Writes one random name; each method writes the part in its name."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.text = ""
        self.depth = 0
        self.lifetimes = 0  # number of lifetimes that binders have named
        # the parts that can be referred to, by kind: the start of each, and the number of named
        # lifetimes there
        self.written: dict[str, list[tuple[int, int]]] = {"path": [], "type": [], "const": []}

    def maybe(self, *write: Callable[[], None]) -> None:
        if self.draw.random() < 0.3:
            for part in write:
                part()

    def put(self, *texts: str) -> None:
        """Writes one of these texts."""
        self.text += self.draw.choice(texts)

    def _number(self, tag: str, *numbers: int) -> None:
        self.text += tag + base_62(self.draw.choice(numbers))

    def _times(self, least: int, most: int, *parts: Callable[[], None]) -> None:
        for _ in range(self.draw.randint(least, most)):
            self.draw.choice(parts)()

    def _disambiguator(self) -> None:
        self._number("s", 0, 1, 61, 62, 63, 2**40)

    def _word(self, *words: str) -> None:
        word = self.draw.choice(words)
        if not word.isascii():
            self.text += "u"
            head, dash, tail = word.encode("punycode").decode().rpartition("-")
            word = head + ("_" if dash else "") + tail
        self.text += str(len(word)) + ("_" if word[:1] == "_" or word[:1].isdigit() else "") + word

    def _part(self, kind: str, *choices: Callable[[], None]) -> None:
        """Writes a reference to an earlier part, or one of the choices: the first one when deep."""
        here, scope = len(self.text), self.lifetimes
        places = [place for place, lifetimes in self.written[kind] if lifetimes <= scope]
        self.depth += 1
        if places and self.draw.random() < 0.25:
            self._number("B", *places)
        else:
            (self.draw.choice(choices) if self.depth < 7 else choices[0])()
        self.depth -= 1
        self.written[kind].append((here, scope))

    def path(self) -> None:
        self._part(
            "path",
            self._root,
            self._nested,
            self._nested,
            self._inherent,
            self._trait_impl,
            self._trait,
            self._generic,
        )

    def _root(self) -> None:
        self.text += "C"
        self.maybe(self._disambiguator)
        self._word(*WORDS)

    def _nested(self) -> None:
        self.text += "N"
        self.put(*"vtCSXa")
        self.path()
        self.maybe(self._disambiguator)
        self._word("", *WORDS)

    def _impl(self) -> None:
        self.maybe(self._disambiguator)
        self.path()

    def _inherent(self) -> None:
        self.text += "M"
        self._impl()
        self._type()

    def _trait_impl(self) -> None:
        self.text += "X"
        self._impl()
        self._type()
        self.path()

    def _trait(self) -> None:
        self.text += "Y"
        self._type()
        self.path()

    def _generic(self) -> None:
        self.text += "I"
        self.path()
        self._times(1, 3, self._type, self._type, self._lifetime, self._const_arg)
        self.text += "E"

    def _lifetime(self) -> None:
        self._number("L", *range(self.lifetimes + 1))

    def _const_arg(self) -> None:
        self.text += "K"
        self._const()

    def _const(self) -> None:
        self._part("const", self._value)

    def _value(self) -> None:
        # c++filt escapes some characters without need, and does not escape quotes: leave those out
        characters = [f"c{ord(character):x}_" for character in "Az09+\t\n\r\x7fé🤦"]
        signed = [
            f"{letter}{sign}{number:x}_"
            for letter in "ailnsx"
            for sign in ("", "n")
            for number in (1, 127, 2**63)
        ]
        self.put("p", "b0_", "b1_", "j0_", f"y{2 ** 64 - 1:x}_", *characters, *signed)

    def _type(self) -> None:
        self._part(
            "type",
            self._basic,
            self._array,
            self._slice,
            self._tuple,
            self._reference,
            self._pointer,
            self._function,
            self._dyn,
            self._root,
            self._nested,
            self._generic,
        )

    def _basic(self) -> None:
        self.put(*"abcdefhijlmnopstuvxyz")

    def _array(self) -> None:
        self.text += "A"
        self._type()
        self._const()

    def _slice(self) -> None:
        self.text += "S"
        self._type()

    def _tuple(self) -> None:
        self.text += "T"
        self._times(1, 3, self._type)
        self.text += "E"

    def _reference(self) -> None:
        self.put("R", "Q")
        self.maybe(self._lifetime)
        self._type()

    def _pointer(self) -> None:
        self.put("P", "O")
        self._type()

    def _binder(self) -> None:
        more = self.draw.choice((0, 1, 30))
        self._number("G", more)
        self.lifetimes += more + 1

    def _function(self) -> None:
        outer = self.lifetimes
        self.text += "F"
        self.maybe(self._binder)
        self.put("", "U")
        self.put("", "KC", "K6system", "K21C_cmse_nonsecure_call")
        self._times(0, 3, self._type)
        self.text += "E"
        self._type()
        self.lifetimes = outer

    def _dyn(self) -> None:
        outer = self.lifetimes
        self.text += "D"
        self.maybe(self._binder)
        self._times(1, 2, self._bound)
        self.text += "E"
        self.lifetimes = outer
        self._lifetime()

    def _bound(self) -> None:
        self.path()
        self._times(0, 2, self._binding)

    def _binding(self) -> None:
        self.text += "p"
        self._word(*WORDS)
        self._type()


def mangled(draw: random.Random) -> str:
    """A name, which may include where it was instantiated and a suffix of the compiler."""
    mangler = Mangler(draw)
    mangler.path()
    mangler.maybe(mangler.path)
    mangler.put("", ".llvm.123", ".cold")
    return "_R" + mangler.text
