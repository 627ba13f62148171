"""Small worlds of tables: what there is in a shop, a school, a hospital, and rows that could stand there."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from random import Random

from assay.core.errors import UnknownNameError

__all__ = ["THEMES", "Cell", "Column", "Table", "at", "fill_tables", "theme"]

Cell = int | str | None

_THEMES = {
    "shop": """
        city cities: name=town region=north|south|east|west population=10..90 year=1900..1990 area?=2..40
        customer customers: name=person tier=bronze|silver|gold age=18..60 points?=0..300/10 entry=2015..2024
        purchase purchases: code=word status=open|paid|sent|returned day=1..30 weight?=1..20 discount=0..30/5
        item items: name=thing material=wood|steel|glass|cotton price=5..60 quantity=1..9 rating?=1..5""",
    "school": """
        school schools: name=town kind=public|private|church size=100..900/50 year=1900..1990 budget?=10..60
        teacher teachers: name=person subject=history|physics|music|biology age=25..65 salary=30..70 hours?=10..28
        course courses: code=word level=basic|middle|advanced seats=8..30 fee?=0..200/20 weeks=4..16
        student students: name=person grade=A|B|C|D age=10..19 absences?=0..12 score=40..100""",
    "library": """
        publisher publishers: name=town country=Chile|Ghana|Japan|Norway year=1900..1990 staff=5..80 awards?=0..9
        author authors: name=person genre=crime|poetry|history|travel birth=1920..1990 prizes?=0..6 languages=1..5
        book books: title=word binding=paper|cloth|leather pages=80..600/20 year=1960..2024 price?=5..50
        loan loans: reader=person state=open|returned|lost day=1..30 fine?=0..20 renewals=0..4""",
    "flights": """
        country countries: name=land continent=Africa|Asia|Europe|America airports=1..40 area=10..90 visitors?=1..60
        airline airlines: name=thing alliance=Sky|Star|Orbit fleet=5..90 year=1930..2010 complaints?=0..50
        flight flights: code=word period=morning|noon|evening|night distance=200..3000/100 seats=60..300/20 delay?=0..90/5
        ticket tickets: passenger=person cabin=economy|business|first price=40..400/10 bags=0..5 miles?=0..90/5""",
    "hospital": """
        clinic clinics: name=town kind=general|dental|heart|eye beds=20..300/10 year=1900..1990 rating?=1..5
        doctor doctors: name=person rank=junior|senior|chief age=28..66 salary=40..99 papers?=0..30
        patient patients: name=person blood=A|B|AB|O age=1..95 weight=40..110 visits?=0..20
        treatment treatments: drug=word form=pill|drops|cream|injection days=1..28 dose=5..90/5 cost?=2..80""",
    "cinema": """
        studio studios: name=town owner=state|family|fund year=1910..1990 staff=20..400/10 awards?=0..12
        director directors: name=person style=drama|comedy|thriller|western age=28..80 films=1..30 prizes?=0..9
        film films: title=word language=Danish|Hindi|Korean|Swahili minutes=70..190/5 year=1970..2024 rating?=1..10
        screening screenings: hall=thing slot=matinee|evening|late viewers=5..200/5 price=4..18 day?=1..30""",
    "league": """
        league leagues: name=land sport=handball|hockey|rugby|volleyball teams=6..20 year=1900..1990 sponsors?=0..9
        team teams: name=town colour=red|blue|green|white points=0..60 budget=5..90 injured?=0..8
        player players: name=person position=keeper|defender|wing|centre age=17..38 height=160..205 goals?=0..30
        training trainings: place=thing kind=strength|speed|tactics minutes=30..120/10 day=1..30 pulse?=90..180/5""",
    "company": """
        division divisions: name=town field=energy|food|software|transport profit=1..90 year=1930..2010 offices?=1..12
        department departments: name=thing kind=sales|research|support budget=10..99 floor=1..12 vacancies?=0..9
        employee employees: name=person contract=full|part|temporary salary=20..95 age=19..64 bonus?=0..20
        project projects: code=word priority=low|middle|high hours=10..400/10 month=1..12 risk?=1..10""",
    "music": """
        label labels: name=land format=vinyl|tape|stream year=1930..2010 staff=3..60 studios?=1..8
        band bands: name=thing genre=jazz|rock|folk|soul members=2..9 start=1970..2020 concerts?=0..90
        album albums: title=word edition=standard|live|deluxe year=1975..2024 price=6..40 copies?=1..90
        song songs: title=word mood=calm|sad|wild|happy seconds=90..400/10 tempo=60..180/5 votes?=0..50""",
    "farm": """
        village villages: name=town soil=clay|sand|loam height=10..900/10 people=50..900/50 wells?=0..9
        farm farms: name=thing kind=dairy|fruit|grain|mixed area=5..90 workers=1..20 debt?=0..60
        field fields: code=word crop=wheat|barley|beans|clover size=1..30 yield=2..60 rain?=5..90/5
        harvest harvests: driver=person quality=good|fair|poor day=1..30 tons=1..40 loss?=0..12""",
}
"""Each theme is a chain: rows of a table belong to rows of the table above. ``name=pool``; ``=a|b|c`` is a label,
``=low..high/step`` a whole number; ``?`` says that cells may be missing."""

_POOLS = {
    "person": "Ada Ben Cleo Dan Eva Finn Gita Hugo Ida Jan Kira Leo Mia Nils Olga Paul Rosa Sam Tara Uwe Vera Yan",
    "town": "Arlen Brest Corin Dover Elmau Fargo Genk Hilden Ipso Jena Kiel Lund Merano Nice Orel Pisa Rimini Split",
    "land": "Aland Borneo Corfu Delos Elba Fiji Gozo Hydra Ithaca Java Kos Lewis Malta Naxos Oland Paros",
    "thing": "anchor beacon candle dagger engine falcon garden hammer island jacket kettle lantern mirror needle orchid pillow",
    "word": "alpha bravo cedar delta ember frost grove haven indigo jasper karma linen maple nectar onyx prism quartz river",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column that is neither key nor reference.

    Attributes:
        name: as in SQL and in English.
        text: whether its cells are text.
        values: what cells may hold.
        label: whether the values are few and name groups.
        missing: whether cells may be missing.
    """

    name: str
    text: bool
    values: tuple[str, ...] | range
    label: bool = False
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """One table of a theme.

    Attributes:
        name: also what one row is called in English.
        plural: what several are called.
        columns: between ``id`` and the reference.
        parent: the table that its rows belong to, by ``parent_id``; "" for the first of the chain.
    """

    name: str
    plural: str
    columns: tuple[Column, ...]
    parent: str = ""

    @property
    def reference(self) -> str:
        """The column that refers to the parent."""
        return f"{self.parent}_id"

    @property
    def header(self) -> tuple[str, ...]:
        """All column names."""
        return ("id", *(c.name for c in self.columns), *((self.reference,) if self.parent else ()))

    def column(self, name: str) -> Column:
        """A column by name.

        Raises:
            UnknownNameError: there is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise UnknownNameError(f"column of {self.name}", name, [c.name for c in self.columns])

    @property
    def labels(self) -> tuple[Column, ...]:
        """Columns that name groups."""
        return tuple(c for c in self.columns if c.label)

    @property
    def numbers(self) -> tuple[Column, ...]:
        """Columns of numbers."""
        return tuple(c for c in self.columns if not c.text)

    def create_statement(self) -> str:
        """The statement that creates it."""
        lines = ["id INTEGER PRIMARY KEY"]
        lines += [f"{c.name} {'TEXT' if c.text else 'INTEGER'}{'' if c.missing else ' NOT NULL'}" for c in self.columns]
        if self.parent:
            lines.append(f"{self.reference} INTEGER REFERENCES {self.parent}(id)")
        return f"CREATE TABLE {self.name} ({', '.join(lines)});"


@cache
def theme(name: str) -> tuple[Table, ...]:
    """The tables of a theme, each of which belongs to the one before.

    Raises:
        UnknownNameError: there is no such theme.

    >>> [t.name for t in theme("shop")], theme("shop")[1].reference
    (['city', 'customer', 'purchase', 'item'], 'city_id')
    """
    if name not in _THEMES:
        raise UnknownNameError("theme", name, THEMES)
    tables: list[Table] = []
    for line in _THEMES[name].strip().splitlines():
        head, _, rest = line.strip().partition(": ")
        one, plural = head.split()
        columns = tuple(_column(*word.split("=")) for word in rest.split())
        tables.append(Table(one, plural, columns, tables[-1].name if tables else ""))
    return tuple(tables)


def at(tables: Sequence[Table], number: int) -> Table:
    """A table by its number in the chain, which may come from untyped facts."""
    return tables[number]


THEMES = tuple(_THEMES)
"""Names of the themes."""


def _column(name: str, kind: str) -> Column:
    bare, missing = name.rstrip("?"), name.endswith("?")
    if ".." in kind:
        low, _, rest = kind.partition("..")
        high, _, step = rest.partition("/")
        return Column(bare, False, range(int(low), int(high) + 1, int(step or 1)), missing=missing)
    if "|" in kind:
        return Column(bare, True, tuple(kind.split("|")), label=True)
    return Column(bare, True, tuple(_POOLS[kind].split()))


def fill_tables(
    tables: Iterable[Table], counts: Iterable[int], near: Mapping[tuple[str, str], Collection[Cell]], rng: Random
) -> dict[str, list[list[Cell]]]:
    """Rows for tables of a chain: some cells are missing, some rows belong to nothing, and to some nothing belongs.

    Args:
        tables: in the order of the chain.
        counts: rows of each.
        near: values that cells of a column (table, column) should often have, such as the constants of a query.
        rng: draws them.
    """
    found: dict[str, list[list[Cell]]] = {}
    above: list[int] = []
    for table, count in zip(tables, counts, strict=True):
        keys = sorted(rng.sample(range(1, 4 * count), count))
        columns = [_cells(c, count, near.get((table.name, c.name), ()), rng) for c in table.columns]
        if table.parent:
            some = above[: max(1, len(above) - 1 - rng.randrange(2))]
            columns.append([None if rng.random() < 0.2 else rng.choice(some) for _ in range(count)])
        found[table.name] = [list(row) for row in zip(keys, *columns, strict=True)]
        above = rng.sample(keys, count)
    return found


def _cells(column: Column, count: int, near: Collection[Cell], rng: Random) -> list[Cell]:
    cells: list[Cell] = list(rng.choices(column.values, k=count))
    if near:
        wanted = tuple(near)
        for i in range(count):
            if rng.random() < 0.35:
                cells[i] = rng.choice(wanted)
    if column.missing:
        for i in range(count):
            if rng.random() < 0.18:
                cells[i] = None
    return cells
