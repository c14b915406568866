"""Asks for the fields of a form with a prompt that people reply to, and reads the reply by the form."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from telegram import ForceReply

from channels.base import Card, ChannelError, Form, Inbound, InboundPress, MessageRef
from channels.telegram import forms, render, wire
from channels.telegram.calls import Calls
from channels.telegram.presses import Presses

log = logging.getLogger("channels.telegram")

_KEPT: Final = 1000  # forms and prompts remembered; both only spare a question or a second prompt
_AGAIN: Final = 60.0  # seconds in which one person is asked for one form once
_NOT_NOW: Final = "I could not ask just now. Press again in a moment."


class Asking:
    """The forms of one bot's cards. `seal` marks the prompts, `presses` answers the buttons."""

    def __init__(
        self, calls: Calls, presses: Presses, seal: forms.Seal, monotonic: Callable[[], float]
    ) -> None:
        self._calls, self._presses, self._seal, self._monotonic = calls, presses, seal, monotonic
        self._forms: OrderedDict[str, Form] = OrderedDict()
        self._asked: OrderedDict[tuple[int, int, str], float] = OrderedDict()

    def note(self, card: Card) -> None:
        """A card was drawn: its forms are these, or none any more."""
        for one in (card, *card.calls):
            for form in one.forms:
                if one.state == "open":
                    remember(self._forms, form.data, form)
                else:
                    self._forms.pop(form.data, None)

    def opened(self, press: InboundPress) -> wire.FormOpened | None:
        """What a press means whose button was too small to say that it opens a form."""
        form = self._forms.get(press.data)
        if form is None or not wire.is_callback(press):
            return None
        _, card = wire.unpack_ref(press.message_ref or MessageRef("0:0"))
        return wire.FormOpened(press=press, names=forms.ANY, label=form.title, card=card)

    async def ask(self, inbound: Inbound, opened: wire.FormOpened) -> None:
        """Ask for the fields; whoever may not fill them in is told why instead."""
        press = opened.press
        chat = int(press.thread.conversation)
        key = (chat, opened.card, f"{press.data}|{press.actor.user}")
        if self._monotonic() - self._asked.get(key, -_AGAIN) < _AGAIN:  # impatient fingers
            await self._presses.settle(press.action_id, "Reply to the message that I sent.")
            return
        form = await self._form(inbound, press)
        if isinstance(form, str):
            await self._presses.settle(press.action_id, form)
            return
        names = tuple(field.name for field in form.fields) if form else opened.names
        prompt = forms.Prompt(data=press.data, card=opened.card, names=forms.short(names))
        line = self._seal.write(prompt, chat)
        drawn = render.prompt(
            prompt, line, form=form, label=opened.label, asked=press.actor, name=press.author
        )
        markup = ForceReply(selective=True, input_field_placeholder=render.placeholder(opened.label))
        try:
            await self._calls.post(press.thread, drawn, markup=markup, reply_to=opened.card)
        except ChannelError as error:
            log.warning("telegram: a form could not be asked for: %s", error)
            await self._presses.settle(press.action_id, _NOT_NOW)
            return
        remember(self._asked, key, self._monotonic())
        await self._presses.settle(press.action_id, "")

    async def _form(self, inbound: Inbound, press: InboundPress) -> Form | str | None:
        """The form as it stands now, or why there is none; None when nobody can tell just now and it is
        not remembered: its button names the fields."""
        try:
            return await inbound.form(press)
        except Exception as error:  # whatever it was, the person has pressed and waits
            log.warning("telegram: what a form holds is not known (%s)", type(error).__name__)
            return self._forms.get(press.data)

    async def read(self, inbound: Inbound, press: InboundPress) -> InboundPress:
        """A submitted form with its values as the kinds of its fields want them."""
        form = self._forms.get(press.data) or await inbound.form(press)
        return press if isinstance(form, str) else replace(press, values=forms.typed(form, press.values))


def remember(store: OrderedDict[Any, Any], key: object, value: object) -> None:
    """Keep the newest only."""
    store[key] = value
    store.move_to_end(key)
    while len(store) > _KEPT:
        store.popitem(last=False)
