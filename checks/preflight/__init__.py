"""The launch checklist, in the order in which it is printed. A new item is one function and its name here."""

from checks.preflight.item import Item

ITEMS: tuple[Item, ...] = ()
