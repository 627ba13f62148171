"""A ledger with a bank."""

from __future__ import annotations

from random import Random

from assay_tasks.swe.kind import Example, Kind, Plant

__all__ = ["KIND"]

_PEOPLE: tuple[str, ...] = ("ann", "bob", "cleo", "dan", "eve", "finn", "gus", "hana")

_LEDGER = '''\
"""Accounts of people, in cents."""


class Account:
    """An account with a balance that may go down to minus its overdraft."""

    def __init__(self, owner, balance=0, overdraft=0, history=None):
        self.owner = owner
        self.balance = balance
        self.overdraft = overdraft
        self.history = [] if history is None else history

    def pay_in(self, amount):
        """Add an amount, note it in the history as ["in", amount], return the new balance. ValueError unless it is positive."""
        if amount <= 0:
            raise ValueError("amount must be positive")
        self.balance += amount
        self.history.append(["in", amount])
        return self.balance

    def pay_out(self, amount):
        """Take an amount out and note it as ["out", amount]; return the new balance.

        ValueError unless it is positive, and where the balance would fall below minus the overdraft.
        """
        if amount <= 0:
            raise ValueError("amount must be positive")
        if self.balance - amount < -self.overdraft:
            raise ValueError("not enough money")
        self.balance -= amount
        self.history.append(["out", amount])
        return self.balance

    def spent(self):
        """The sum of all amounts that were taken out."""
        return sum(amount for kind, amount in self.history if kind == "out")

    def last_entries(self, count=3):
        """The last entries of the history, the latest first, at most count of them."""
        return self.history[::-1][:count]
'''

_BANK = '''\
"""A bank: accounts by owner."""

from .ledger import Account


class Bank:
    """Accounts by owner. Transfers cost a fee, which the sender pays on top of the amount."""

    def __init__(self, fee=0):
        self.fee = fee
        self.accounts = {}
        self.earned = 0

    def open_account(self, owner, balance=0, overdraft=0):
        """A new account, which is returned. ValueError where the owner has one."""
        if owner in self.accounts:
            raise ValueError("there is such an account")
        self.accounts[owner] = Account(owner, balance, overdraft)
        return self.accounts[owner]

    def send_money(self, sender, receiver, amount):
        """Move an amount from one owner to another; the fee goes to the bank. KeyError where one has no account.

        Nothing moves where the sender cannot pay (ValueError).
        """
        source, target = self.accounts[sender], self.accounts[receiver]
        source.pay_out(amount + self.fee)
        target.pay_in(amount)
        self.earned += self.fee

    def add_interest(self, percent):
        """Pay interest, rounded down to a cent, into each account whose balance is positive, where it is not 0."""
        for account in self.accounts.values():
            if account.balance > 0:
                interest = account.balance * percent // 100
                if interest:
                    account.pay_in(interest)

    def richest(self, count=1):
        """Owners with the highest balances, highest first; equal ones in alphabetical order."""
        ranked = sorted(self.accounts.values(), key=lambda account: (-account.balance, account.owner))
        return [account.owner for account in ranked[:count]]
'''


def _account(rng: Random) -> list[str]:
    balance, overdraft = rng.randint(0, 40) * 10, rng.choice((0, 0, rng.randint(1, 20) * 10))
    arguments = f", {balance}{f', {overdraft}' if overdraft else ''}" if balance or overdraft else ""
    return [f"account = Account({rng.choice(_PEOPLE)!r}{arguments})"]


def _account_moves(rng: Random) -> Example:
    lines = _account(rng)
    lines.append(f"account.pay_in({rng.randint(20, 60) * 10})")
    lines += [f"account.{rng.choice(('pay_in', 'pay_out'))}({rng.randint(1, 9) * 10})" for _ in range(rng.randint(1, 3))]
    asks = ("account.balance", "account.history", "account.spent()", "account.last_entries()", "account.last_entries(2)")
    return lines, rng.choice(asks)


def _account_value(rng: Random) -> Example:
    lines = _account(rng)
    return [*lines, f"account.pay_in({rng.randint(1, 9) * 10})"], f"account.pay_{rng.choice(('in', 'out'))}({rng.randint(1, 9)})"


def _account_edge(rng: Random) -> Example:
    balance, overdraft = rng.randint(1, 40) * 5, rng.choice((0, rng.randint(1, 20) * 5))
    amount = balance + overdraft + rng.choice((0, 0, 1, -1))
    lines = [f"account = Account({rng.choice(_PEOPLE)!r}, {balance}{f', {overdraft}' if overdraft else ''})"]
    return lines, f"account.pay_out({amount})"


def _account_refuses(rng: Random) -> Example:
    return _account(rng), f"account.{rng.choice(('pay_in', 'pay_out'))}({rng.choice((0, -rng.randint(1, 9)))})"


def _draw_accounts(rng: Random) -> tuple[list[str], list[str]]:
    people = rng.sample(_PEOPLE, 3)
    lines = [f"bank = Bank({rng.choice(('', '1', '2', '5'))})"]
    for person in people:
        extra = rng.choice(("", f", {rng.randint(1, 9) * 10}"))
        lines.append(f"bank.open_account({person!r}, {rng.randint(3, 30) * 10}{extra})")
    return lines, people


def _transfer(rng: Random) -> Example:
    lines, (one, two, _) = _draw_accounts(rng)
    lines.append(f"bank.send_money({one!r}, {two!r}, {rng.randint(1, 25)})")
    asks = (
        f"bank.accounts[{one!r}].balance",
        f"bank.accounts[{two!r}].balance",
        "bank.earned",
        f"bank.accounts[{one!r}].spent()",
    )
    return lines, rng.choice((*asks, f"[bank.accounts[name].balance for name in ({one!r}, {two!r})]"))


def _transfers(rng: Random) -> Example:
    lines, (one, two, _) = _draw_accounts(rng)
    again = f"bank.send_money({one!r}, {two!r}, {rng.randint(1, 9)})"
    failed = [f"with suppress(ValueError): bank.send_money({two!r}, {one!r}, 9000)"]
    lines = ["from contextlib import suppress", *lines, again, *rng.choice(([again], failed, [again, *failed]))]
    return lines, rng.choice(("bank.earned", f"bank.accounts[{one!r}].balance", f"bank.accounts[{two!r}].history"))


def _interest(rng: Random) -> Example:
    lines, people = _draw_accounts(rng)
    lines += [f"bank.open_account('zoe', {rng.choice((0, -50, 7))})", f"bank.add_interest({rng.randint(1, 8)})"]
    return lines, f"[[bank.accounts[name].balance, bank.accounts[name].history] for name in {[rng.choice(people), 'zoe']}]"


def _rich(rng: Random) -> Example:
    people, balances = rng.sample(_PEOPLE, 4), [rng.randint(1, 4) * 100 for _ in range(4)]
    lines = ["bank = Bank()", *(f"bank.open_account({p!r}, {b})" for p, b in zip(people, balances, strict=True))]
    return lines, f"bank.richest({rng.choice(('', '2', '3'))})"


def _bank_refuses(rng: Random) -> Example:
    lines, (one, two, _) = _draw_accounts(rng)
    return lines, rng.choice(
        (f"bank.open_account({one!r})", f"bank.send_money({one!r}, {two!r}, 9000)", f"bank.send_money({one!r}, 'nobody', 5)")
    )


KIND = Kind(
    "ledger",
    {"ledger": _LEDGER, "bank": _BANK},
    {
        "Account account": ("Account account", "Purse purse", "Wallet wallet", "Fund fund"),
        "ledger": ("ledger", "money", "books"),
        "Bank bank": ("Bank bank", "Treasury treasury", "Exchange exchange"),
        "pay_in pay_out": ("pay_in pay_out", "deposit withdraw", "credit debit"),
        "last_entries": ("last_entries", "recent", "latest"),
        "open_account": ("open_account", "register", "new_account"),
        "send_money": ("send_money", "transfer", "move_money"),
        "add_interest": ("add_interest", "pay_interest", "credit_interest"),
        "richest": ("richest", "wealthiest", "top_owners"),
    },
    (_account_moves, _account_value, _account_edge, _account_refuses, _transfer, _transfers, _interest, _rich, _bank_refuses),
    (
        Plant("shared state", "ledger", "history=None", "history=[]"),
        Plant(
            "wrong order",
            "bank",
            "        source.pay_out(amount + self.fee)\n        target.pay_in(amount)\n",
            "        target.pay_in(amount)\n        source.pay_out(amount + self.fee)\n",
        ),
        Plant(
            "missing step",
            "ledger",
            '        self.balance -= amount\n        self.history.append(["out", amount])\n',
            "        self.balance -= amount\n",
        ),
        Plant("stale state", "bank", "        self.earned += self.fee\n", "        self.earned = self.fee\n"),
    ),
)
"""A ledger with a bank."""
