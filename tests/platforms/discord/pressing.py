"""What people do with controls: buttons, selects, forms, commands, autocomplete."""

from __future__ import annotations

import copy
from typing import Any

from tests.platforms.discord import words
from tests.platforms.discord.entities import Channel
from tests.platforms.discord.interactions import AUTOCOMPLETE, COMMAND, COMPONENT, MODAL_SUBMIT, Interaction
from tests.platforms.discord.limits import Json
from tests.platforms.discord.posting import event_of
from tests.platforms.discord.seeing import Seeing

File = tuple[str, bytes]  # name and content


class Pressing(Seeing):
    """Everything here returns at once; `await interaction.taken()` waits for the first response."""

    # ---- components

    def press(self, user: str, channel: str, message: str, label: str) -> Interaction:
        """Press the live button with this label or custom id, on a message as it is now."""
        found = self.look(channel, message, user)
        button = words.button(found, label)
        return self._component(user, channel, found, button, {})

    def choose(
        self, user: str, channel: str, message: str, picks: list[str], custom_id: str = ""
    ) -> Interaction:
        """Set a live select to exactly these options, given by label or value. `custom_id`: which select,
        when nothing is picked or several have the same options."""
        found = self.look(channel, message, user)
        select, values = words.select(found, picks, custom_id)
        return self._component(user, channel, found, select, {"values": values})

    def forge(self, user: str, channel: str, message: str, custom_id: str) -> Interaction:
        """Any custom id on any message, as no well-behaved client sends it; also on one that is gone."""
        place = self.channels[channel]
        found = place.messages.get(message) or self.message(place, self.bot_id, "", id=message)
        return self._component(user, channel, found, {"type": 2, "id": 1, "custom_id": custom_id}, {})

    def _component(self, user: str, channel: str, message: Json, control: Json, more: Json) -> Interaction:
        data = {"component_type": control["type"], "custom_id": control["custom_id"]} | more
        data["id"] = control.get("id", 1)
        return self.interact(COMPONENT, user, self.channels[channel], data, message)

    # ---- forms

    def submit(self, opened: Interaction | str, values: dict[str, Any]) -> Interaction:
        """Send a form, given by what opened it or by the person who has it. `values`: by label or custom
        id; texts as str, selects and checkboxes as list of labels or values, a radio group as one, a
        checkbox as bool, an upload as list of (name, bytes). What is not given keeps its prefilled value.
        AssertionError for what a client would not let through."""
        source = self.open_modal(opened) if isinstance(opened, str) else opened
        assert source is not None and source.modal is not None, "there is no form"
        assert not source.submitted, "the form was sent already"
        place, left = self.channels[source.channel], dict(values)
        resolved: Json = {}
        rows = []
        for number, row in enumerate(source.modal["components"], 1):
            rows.append(self._filled(place, row, number, left, resolved))
        assert not left, f"no inputs {sorted(left)} in this form"
        source.submitted = True
        data: Json = {"custom_id": source.modal["custom_id"], "components": rows}
        if resolved:
            data["resolved"] = resolved
        return self.interact(MODAL_SUBMIT, source.user, place, data, source.source)

    def _filled(self, place: Channel, row: Json, number: int, left: Json, resolved: Json) -> Json:
        kind = row["type"]
        if kind == 10:
            return {"type": 10, "id": number}
        control = row["component"] if kind == 18 else row["components"][0]
        label = row["label"] if kind == 18 else control["label"]
        key = label if label in left else control["custom_id"]
        sent: Json = {"type": control["type"], "id": 100 + number, "custom_id": control["custom_id"]}
        sent |= self._answer(place, label, control, left.pop(key, None), resolved)
        if kind == 18:
            return {"type": 18, "id": number, "component": sent}
        return {"type": 1, "id": number, "components": [sent]}

    def _answer(self, place: Channel, label: str, control: Json, value: Any, resolved: Json) -> Json:
        kind, required = control["type"], control.get("required", True)
        if kind == 4:
            text = (control.get("value") or "") if value is None else value
            lowest = control.get("min_length") or (1 if required else 0)
            highest = control.get("max_length") or 4_000
            fits = lowest <= len(text) <= highest or (not text and not required)
            assert fits, f"{label!r} takes {lowest} to {highest} characters, not {len(text)}"
            return {"value": text}
        if kind == 23:
            return {"value": bool(control.get("default")) if value is None else value}
        if kind == 19:
            uploads = [self.upload(place.id, *file) for file in value or []]
            resolved.setdefault("attachments", {}).update({upload["id"]: upload for upload in uploads})
            return {"values": [upload["id"] for upload in uploads]}
        picks = [value] if isinstance(value, str) else value
        options = control.get("options") or []
        if picks is None:
            picks = [option["value"] for option in options if option.get("default")]
        chosen = [o["value"] for pick in picks for o in options if pick in (o["label"], o["value"])]
        assert len(chosen) == len(picks), f"{label!r} has no options {picks}"
        lowest = control.get("min_values", 1 if required else 0)
        assert lowest <= len(chosen) <= control.get("max_values", 1) or not (required or chosen), label
        return {"value": chosen[0] if chosen else None} if kind == 21 else {"values": chosen}

    # ---- commands

    def command(self, name: str, channel: str, kind: int = 1) -> Json:
        """The registered command that a person finds in a channel; those of the guild come first."""
        guild = self.channels[channel].guild
        known = (self.guilds[guild].commands if guild else []) + self.commands
        for command in known:
            if (command["name"], command["type"]) == (name, kind):
                contexts = command.get("contexts") or ([0, 1] if command.get("dm_permission") else [0])
                assert (0 if guild else 1) in contexts, f"{name} is not for here"
                return command
        raise AssertionError(f"no command {name!r}, only {[c['name'] for c in known]}")

    def slash(self, user: str, channel: str, name: str, **options: Any) -> Interaction:
        """A slash command. Options by name; an attachment as (name, bytes). AssertionError for what a
        client would not send: options that are unknown, missing, or none of the choices."""
        command = self.command(name, channel)
        known = {option["name"]: option for option in command["options"]}
        assert options.keys() <= known.keys(), (
            f"/{name} has no options {sorted(options.keys() - known.keys())}"
        )
        missing = [n for n, o in known.items() if o.get("required") and n not in options]
        assert not missing, f"/{name} needs {missing}"
        resolved: Json = {}
        place = self.channels[channel]
        sent = [self._option(place, known[key], value, resolved) for key, value in options.items()]
        data: Json = {"id": command["id"], "name": name, "type": 1, "options": sent}
        return self.interact(COMMAND, user, place, self._scoped(data, command, resolved))

    @staticmethod
    def _scoped(data: Json, command: Json, resolved: Json) -> Json:
        if resolved:
            data["resolved"] = resolved
        return data | ({"guild_id": command["guild_id"]} if "guild_id" in command else {})

    def _option(self, place: Channel, option: Json, value: Any, resolved: Json) -> Json:
        kind, name = option["type"], option["name"]
        if kind == 11:
            upload = self.upload(place.id, *value) | {"ephemeral": True}
            resolved.setdefault("attachments", {})[upload["id"]] = upload
            value = upload["id"]
        elif kind == 6:
            resolved.setdefault("users", {})[value] = self.users[value].public()
        elif kind in (3, 4, 5, 10):
            expected = {3: (str,), 4: (int,), 5: (bool,), 10: (int, float)}[kind]
            assert isinstance(value, expected), f"{name} takes {expected}, not {value!r}"
            choices = [choice["value"] for choice in option.get("choices") or []]
            assert not choices or value in choices, f"{name} takes one of {choices}"
        if kind == 3:
            longest = option.get("max_length") or 6_000
            assert (option.get("min_length") or 0) <= len(value) <= longest, f"the length of {name}"
        return {"name": name, "type": kind, "value": value}

    def autocomplete(
        self, user: str, channel: str, name: str, option: str, typed: str, **others: Any
    ) -> Interaction:
        """Somebody types into an option: `.choices` once it is taken."""
        command = self.command(name, channel)
        known = {entry["name"]: entry for entry in command["options"]}
        assert known[option].get("autocomplete"), f"{option} of /{name} does not ask for choices"
        sent: list[Json] = [{"name": n, "type": known[n]["type"], "value": v} for n, v in others.items()]
        sent.append({"name": option, "type": known[option]["type"], "value": typed, "focused": True})
        data: Json = {"id": command["id"], "name": name, "type": 1, "options": sent}
        return self.interact(AUTOCOMPLETE, user, self.channels[channel], self._scoped(data, command, {}))

    def message_command(self, user: str, channel: str, message: str, name: str) -> Interaction:
        """A command from the menu of a message."""
        command, place = self.command(name, channel, 3), self.channels[channel]
        seen = copy.deepcopy(event_of(self, place, self.look(channel, message, user)))
        seen.pop("member", None)
        data: Json = {"id": command["id"], "name": name, "type": 3, "target_id": message}
        resolved: Json = {"messages": {message: seen}}
        return self.interact(COMMAND, user, place, self._scoped(data, command, resolved))
