"""What a Swift file declares: its tokens, types, functions and properties, for scripts/measure-structure.

No compiler: of `#if` the first branch is read, macros and operators are not understood, and what is written as swift-format
writes it is understood best.
"""

import bisect
import collections
import re
from dataclasses import dataclass, field
from typing import NamedTuple

TYPE_KEYWORDS = {"struct", "class", "enum", "actor", "protocol", "extension"}
MODIFIERS = set("public package internal fileprivate private open static class final lazy mutating nonmutating override unowned "
                "weak indirect required convenience nonisolated consuming borrowing dynamic prefix postfix".split())
# Words that begin no expression.
KEYWORDS = TYPE_KEYWORDS | MODIFIERS | set(
    "let var func init deinit subscript typealias associatedtype import case default if else guard switch for while repeat in "
    "do catch return throw throws rethrows async await try where is as any some inout break continue fallthrough defer true "
    "false nil get set didSet willSet _".split())
COLLECTIONS = {"Set", "Array", "ArraySlice", "Dictionary", "Sequence", "Collection", "UnsafeMutablePointer"}
STANDARD_VALUES = COLLECTIONS | set(
    "Bool Int Int8 Int16 Int32 Int64 UInt UInt8 UInt16 UInt32 UInt64 Double Float Duration String Substring Character Unicode "
    "Range ClosedRange Result Optional Void Never".split())

TOKEN = re.compile(r"""
    (?P<space>\s+|//[^\n]*) | (?P<comment>/\*) | (?P<text>\#*"(?:""(?=[ ]*\n))?) | (?P<number>\#+/[^\n]*?/\#+|\d\w*(?:\.\d\w*)?)
    | (?P<word>`[^`\n]+`|[@\#]?[^\W\d]\w*|\$\w+)
    | (?P<sign>->|\.\.[.<]|[=!]==?|[<>]=|&&|\|\||\?\?|&?[-+*]=|[/%|^&]=|<<=|>>=|.)""", re.X | re.S)
COMMENT_END = re.compile(r"/\*|\*/")


class Token(NamedTuple):
    kind: str  # word, name (in backticks), number, text, sign
    text: str
    line: int
    spaced: bool  # something stands between it and the token before


# ---- From text to tokens


def tokenize(source):
    lines = [found.start() for found in re.finditer("\n", source)]
    tokens = []

    def add(kind, text, at, spaced):
        tokens.append(Token(kind, text, bisect.bisect(lines, at - 1) + 1, spaced))

    def literal(at, opening):
        """The code within a string's interpolations follows the string as parenthesized tokens."""
        hashes = "#" * opening.count("#")
        closing, escape = opening.strip("#") + hashes, "\\" + hashes
        while not source.startswith(closing, at):
            if at >= len(source):
                raise ValueError("a string has no end")
            if not source.startswith(escape, at):
                at += 1
            elif source.startswith("(", at + len(escape)):
                at = code(at + len(escape) + 1, ")", at)
            else:
                at += len(escape) + 1
        return at + len(closing)

    def code(at, until, start):
        if until:
            add("sign", "(", start, True)
        depth, end = 0, at
        while at < len(source):
            found = TOKEN.match(source, at)
            kind, text, spaced = found.lastgroup, found[0], at != end
            at = found.end()
            if kind == "comment":
                nested = 1
                while nested:
                    mark = COMMENT_END.search(source, at)
                    nested += 1 if mark[0] == "/*" else -1
                    at = mark.end()
            if kind in ("space", "comment"):
                continue
            depth += (text == "(") - (text == ")")
            if kind == "word" and text[0] == "`":
                kind, text = "name", text.strip("`")
            add(kind, text if kind != "text" else '"', found.start(), spaced)
            if depth < 0 and until:
                return at
            if kind == "text":
                at = literal(at, text)
            end = at
        return at

    code(0, None, 0)
    return first_branches(tokens)


def first_branches(tokens):
    kept, branches = [], []  # of each #if around: whether its first branch is being read
    for token in tokens:
        if token.text == "#if":
            branches.append(True)
        elif token.text in ("#elseif", "#else"):
            branches[-1] = False
        elif token.text == "#endif":
            branches.pop()
        elif all(branches):
            kept.append(token)
    return kept


# ---- Declarations


@dataclass(eq=False)
class Type:
    name: str  # with the types around it
    kind: str
    file: "File"  # that declares it
    is_private: bool
    bases: list = field(default_factory=list)  # what it inherits, or is an alias of, as references
    members: dict = field(default_factory=lambda: collections.defaultdict(list))
    scopes: list = field(default_factory=list)

    def owns(self, file):
        names = self.name.split(".")
        return file is self.file or file.target == self.file.target and file.path.stem.split("+")[0] in names

    @property
    def stored(self):
        return [m for ms in self.members.values() for m in ms if m.kind == "stored"]


@dataclass(eq=False)
class Scope:
    """Braces that a declaration opens: a type or extension, or a function."""
    kind: str
    name: str
    file: "File"
    line: int
    end_line: int
    type: str  # the type that it is or stands in
    locals: dict = field(default_factory=dict)


@dataclass(eq=False)
class Member:
    name: str
    kind: str  # stored, computed, function
    file: "File"
    modifiers: set
    ref: "Ref" = None
    is_let: bool = False
    initializer: int = None  # the token behind "="; tells the type where nothing else does
    type: Type = None
    closure: "Ref" = None  # a function's last parameter

    @property
    def is_open(self):
        """Files beside its own may write it."""
        return not (self.type.is_private or self.modifiers & {"private", "fileprivate", "private(set)", "fileprivate(set)"})

    def may_write(self, file):
        if self.is_let or self.kind == "function" or self.kind == "computed" and "set" not in self.modifiers:
            return False
        if file is self.file:
            return True
        return self.is_open and (file.target == self.file.target or bool(
            self.modifiers & {"public", "package", "open"}) and "internal(set)" not in self.modifiers)


class Ref(NamedTuple):
    """A type as it is written, and where."""
    words: tuple
    within: str
    file: "File"


class Local(NamedTuple):
    ref: Ref
    kind: str  # let, var, inout (or a closure's, which may be that)
    start: int = 0  # the token from which on it can be named


class File:
    def __init__(self, path, target, source):
        self.path, self.target, self.line_count = path, target, source.count("\n")
        self.tokens = tokenize(source) + [Token("sign", "", 0, True)] * 4
        self.match, opened = {}, []
        for i, token in enumerate(self.tokens):
            if token.kind == "sign" and token.text in ("(", "[", "{"):
                opened.append(i)
            elif token.kind == "sign" and token.text in (")", "]", "}") and opened:
                self.match[opened.pop()] = i
        self.scopes, self.types, self.members = {}, [], []
        self.read()

    def words(self, i, stops):
        """The tokens of a type from i on, up to one of `stops` or the end of the declaration."""
        start, t = i, self.tokens
        while t[i].text and t[i].text not in stops and t[i].text not in (")", "]", "}"):
            if i > start and t[i].line > t[i - 1].line and t[i].text not in ("->", "&", ".") \
                    and t[i - 1].text not in ("->", "&", ".", ",", ":"):
                break
            i = self.generic_end(i) if t[i].text == "<" else self.match.get(i, i) + 1
        return tuple(token.text for token in t[start:i]), i

    def generic_end(self, i):
        """Behind the `>` that closes a `<`; i + 1 where it closes nothing."""
        depth, t = 0, self.tokens
        for j in range(i, min(i + 200, len(t))):
            if t[j].text not in ("<", ">", ",", ".", "?", "[", "]", ":", "(", ")", "&", "->", "==") and t[j].kind != "word":
                break
            depth += (t[j].text == "<") - (t[j].text == ">")
            if depth == 0:
                return j + 1
        return i + 1

    def find(self, i, text):
        """The next such token that no brackets enclose."""
        while self.tokens[i].text and self.tokens[i].text != text:
            i = self.match.get(i, i) + 1
        return i

    def parts(self, i):
        """The tokens between brackets, cut at commas: pairs of start and end."""
        end, start, j = self.match[i], i + 1, i + 1
        while j < end:
            if self.tokens[j].text == ",":
                yield start, j
                start = j + 1
            j = self.generic_end(j) if self.tokens[j].text == "<" else self.match.get(j, j) + 1
        if start < end:
            yield start, end

    def modifiers(self, i):
        found, t = set(), self.tokens
        while i:
            i -= 1
            if t[i].text in MODIFIERS or t[i].text[:1] == "@":
                found.add(t[i].text)
            elif t[i].text == ")" and t[i - 2].text == "(" and t[i - 3].text in MODIFIERS:
                found.add(f"{t[i - 3].text}({t[i - 1].text})")
                i -= 3
            else:
                break
        return found

    def read(self):
        t, around = self.tokens, []
        for i, token in enumerate(t):
            scope = around[-1] if around else None
            in_type = scope is not None and scope.kind in TYPE_KEYWORDS
            if token.kind == "sign" and token.text in "{}" and token.text:
                if token.text == "{":
                    around.append(self.scopes.get(i) or Scope("block", "", self, 0, 0, scope.type if scope else ""))
                else:
                    around.pop()
            if token.kind != "word" or t[i - 1].text in (".", "case"):
                continue
            if token.text in TYPE_KEYWORDS and t[i + 1].kind in ("word", "name") and t[i + 1].text not in KEYWORDS - {"init"}:
                self.read_type(i, scope)
            elif token.text == "typealias" and (not around or in_type):
                type = self.new_type(i, "alias", t[i + 1].text, scope)
                type.bases.append(Ref(self.words(self.find(i, "=") + 1, ())[0], type.name, self))
            elif token.text == "func" or in_type and token.text in ("init", "subscript", "deinit") and t[i + 1].text in "(?!<{":
                self.read_function(i, scope)
            elif in_type and token.text in ("var", "let"):
                self.read_property(i, scope)

    def open(self, i, opening, kind, name, type):
        end = self.tokens[self.match.get(opening, opening)].line
        self.scopes[opening] = Scope(kind, name, self, self.tokens[i].line, end, type)
        return self.scopes[opening]

    def new_type(self, i, kind, name, scope):
        is_private = bool(self.modifiers(i) & {"private", "fileprivate"})
        name = f"{scope.type}.{name}" if scope and scope.type else name
        self.types.append(Type(name, kind, self, is_private))
        return self.types[-1]

    def read_type(self, i, scope):
        words, j = self.words(i + 1, ("{", ":", "<", "where"))
        name, kind, bases = "".join(words), self.tokens[i].text, []
        opening = self.find(i, "{")
        if self.tokens[j].text == "<":
            j = self.generic_end(j)
        if self.tokens[j].text == ":":
            while self.tokens[j].text in (":", ","):
                words, j = self.words(j + 1, ("{", ",", "where"))
                bases.append(Ref(words, scope.type if scope else "", self))
        if kind != "extension":
            type = self.new_type(i, kind, name, scope)
            type.bases, name = bases, type.name
        self.open(i, opening, kind, name, name)

    def read_function(self, i, scope):
        t, type = self.tokens, scope.type if scope else ""
        name = t[i + 1].text if t[i].text == "func" else t[i].text
        parameters, result, within = {}, None, type
        j = self.find(i, "(" if name != "deinit" else "{")
        if name != "deinit":
            for start, end in self.parts(j):
                colon = next((k for k in range(start, end) if t[k].text == ":"), end)
                words, _ = self.words(colon + 1, ("=", ","))
                parameters[t[colon - 1].text] = Local(Ref(words, within, self), "inout" if "inout" in words else "let")
            j = self.match[j] + 1
            while t[j].text in ("async", "throws", "rethrows") or t[j].text == "(" and t[j - 1].text == "throws":
                j = self.match.get(j, j) + 1
            if t[j].text == "->":
                result = Ref(self.words(j + 1, ("{", "where"))[0], within, self)
        if name == "init":
            result = Ref((type,), "", self)
        if not scope or scope.kind in TYPE_KEYWORDS:
            self.members.append((type, Member(name, "function", self, self.modifiers(i), result)))
            if parameters and "->" in (last := list(parameters.values())[-1].ref).words:
                self.members[-1][1].closure = last
        if not (scope and scope.kind == "protocol"):
            self.open(i, self.find(j, "{"), "function", name, type).locals = parameters

    def read_property(self, i, scope):
        t, modifiers, j = self.tokens, self.modifiers(i), i
        while (j == i or t[j].text == ",") and t[j + 1].kind in ("word", "name"):
            member = Member(t[j + 1].text, "stored", self, set(modifiers), None, t[i].text == "let")
            j += 2
            if t[j].text == ":":
                words, j = self.words(j + 1, ("=", "{", ","))
                member.ref = Ref(words, scope.type, self)
            if t[j].text == "{" and t[j + 1].text not in ("didSet", "willSet"):
                inside = {token.text for token in t[j:self.match[j]]}
                member.kind = "computed"
                member.modifiers |= inside & {"set", "_modify"} and {"set"}
                self.open(i, j, "function", member.name, scope.type).locals = {"newValue": Local(member.ref, "let")}
            elif t[j].text == "=":
                member.initializer = j = j + 1
                while t[j].text and t[j].text != "," and t[j].line == t[j - 1].line:
                    j = self.match.get(j, j) + 1
            if "static" in modifiers or "class" in modifiers:
                member.kind = "static " + member.kind
            self.members.append((scope.type, member))


# ---- What names mean


class Program:
    """The files of a checkout, and what names mean in them."""

    def __init__(self, checkout):
        self.checkout = checkout
        paths = sorted((checkout / "Sources").rglob("*.swift"))
        self.files = [File(p, p.relative_to(checkout / "Sources").parts[0], p.read_text()) for p in paths]
        self.types, self.found = collections.defaultdict(list), {}
        for type in [type for file in self.files for type in file.types]:
            self.types[type.name].append(type)
        self.functions = collections.defaultdict(list)  # by name, of whatever type
        self.properties = collections.defaultdict(list)
        for file in self.files:
            for scope in file.scopes.values():
                type = self.find(scope.type, "", file) if scope.kind in TYPE_KEYWORDS else None
                if type:
                    type.scopes.append(scope)
            for type, member in file.members:
                member.type = self.find(type, "", file) if type else None
                if member.type:
                    member.type.members[member.name].append(member)
                    if member.kind in ("stored", "computed"):
                        self.properties[member.name].append(member)
                if member.kind == "function":
                    self.functions[member.name].append(member)

    def find(self, name, within, file):
        """The type that a name means in a file, within a type."""
        key = (name, within, file)
        if key not in self.found:
            outer, found = within, []
            while not found:
                candidates = self.types.get(f"{outer}.{name}" if outer else name, [])
                found = [c for c in candidates if c.file is file] \
                    or [c for c in candidates if c.file.target == file.target and not c.is_private] \
                    or [c for c in candidates if not c.is_private]
                if not outer:
                    break
                outer = outer.rpartition(".")[0]
            self.found[key] = found[0] if found else None
        return self.found[key]

    def type_of(self, ref, depth=0):
        words = plain(ref.words) if ref else ()
        if not words or words[0] in "([" or depth > 8:
            return None
        type = self.find("".join(words[:words.index("<")] if "<" in words else words), ref.within, ref.file)
        return self.type_of(type.bases[0], depth + 1) if type and type.kind == "alias" else type

    def is_value(self, ref):
        """Whether changing a part of it changes whatever holds it; None where nobody knows."""
        type = self.type_of(ref)
        if type:
            return type.kind in ("struct", "enum")
        words = plain(ref.words) if ref else ()
        return True if words and (words[0] in "([" or words[0] in STANDARD_VALUES) else None

    def members(self, type, name, depth=0):
        if not type or depth > 8:
            return []
        inherited = (self.members(self.type_of(base), name, depth + 1) for base in type.bases)
        return type.members.get(name) or next((found for found in inherited if found), [])


def plain(words):
    words = list(words)
    while words and (words[0] in ("inout", "any", "some", "sending", "borrowing", "consuming") or words[0][0] == "@"):
        words.pop(0)
    while words and words[-1] in ("?", "!"):
        words.pop()
    if words and words[0] == "(" and words[-1] == ")" and "," not in words and ":" not in words and "->" not in words:
        return plain(words[1:-1])
    return tuple(words)


def pieces(words, separators):
    """The words cut at separators, whatever brackets stand between."""
    out, depth = [[]], 0
    for word in words:
        depth += (word in "([<") - (word in ")]>")
        if depth == 0 and word in separators:
            out.append([])
        else:
            out[-1].append(word)
    return out


def element(ref):
    """What a collection holds, and the key where it is a dictionary."""
    words = plain(ref.words) if ref else ()
    inner = words[1:-1] if words[:1] == ("[",) else words[2:-1] if words[:1] and words[0] in COLLECTIONS else ()
    found = [Ref(tuple(piece), ref.within, ref.file) for piece in pieces(inner, ",:")] if inner else [None]
    return found[-1], found[0] if len(found) > 1 else None


def labelled(ref):
    """The elements of a tuple by label, or by number."""
    out = {}
    for number, part in enumerate(pieces(plain(ref.words)[1:-1], ",")):
        has_label = len(part) > 1 and part[1] == ":"
        out[part[0] if has_label else str(number)] = Ref(tuple(part[2:] if has_label else part), ref.within, ref.file)
    return out


def closure_parameters(ref):
    """What a closure of this type gets."""
    words = ref.words[ref.words.index("("):]
    words, depth = words[words[1:2] == ("(",):], 0
    for end, word in enumerate(words):
        depth += (word == "(") - (word == ")")
        if depth == 0:
            return [Ref(tuple(piece), ref.within, ref.file) for piece in pieces(words[1:end], ",") if piece]
    return []
