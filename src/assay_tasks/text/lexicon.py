"""Common English words, for problems that need some."""

from __future__ import annotations

__all__ = ["WORDS"]

_EVERY = (
    "acorn anchor angle ankle apple april apron arrow autumn bacon badge baker bamboo banana banker barley barrel basket "
    "beacon beaver bishop blanket blossom bottle bottom branch bread breeze bridge broom bucket butter button cabin cactus "
    "camel camera candle canoe canvas carbon carpet carrot castle cattle cedar cellar cement chain chair chalk cheese "
    "cherry chimney circle circus citizen cloud clover coast coffee collar copper coral corner cotton couch cradle crayon "
    "cricket crystal curtain cushion daisy dancer desert dinner doctor dollar donkey dragon drawer drummer eagle earth "
    "elbow engine evening fabric falcon farmer feather fence fiddle finger flame flower forest fossil fountain fridge "
    "galaxy garden garlic ginger glacier glider gravel guitar hammer harbor harvest helmet hermit hockey honey hornet "
    "hunter island ivory jacket jelly jersey jungle kennel kettle kitten knight ladder lagoon lantern leather lemon lesson "
    "letter linen lizard lobster locket lumber magnet mango mantle maple marble market meadow medal melon metal mirror "
    "mitten monkey morning mosaic motor mountain muffin museum napkin needle nephew nickel noodle nugget number oasis ocean "
    "olive onion orange orchard otter oyster packet paddle palace panther parade parrot pasture peach peanut pebble pencil "
    "pepper piano picnic pigeon pillow pilot pirate planet plaster pocket poem poet pony poppy potato powder prairie "
    "pumpkin puppet puzzle quarry quarter quiver rabbit radish raven ribbon river rocket rooster saddle sailor salmon "
    "sandal scarf school season shadow shelter shield shovel silver singer sister sketch smoke spider spirit sponge spring "
    "squash stable station stone storm string summer sunset swan table tailor tapestry teacher temple thunder ticket tiger "
    "timber tomato tower trader trail tulip tunnel turkey turtle uncle valley velvet village violet violin walnut wagon "
    "walrus water weasel wheat widow willow window winter wizard wonder "
)
WORDS: tuple[str, ...] = tuple(_EVERY.split())
"""Different words of small letters, four to eight of them mostly."""
