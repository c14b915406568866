"""What people do with controls: buttons, selects, modals, App Home, commands and shortcuts."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.platforms.slack import limits
from tests.platforms.slack.delivery import Delivery
from tests.platforms.slack.limits import Json, units
from tests.platforms.slack.methods_views import checked_view, initial_value, redrawn, stored_view
from tests.platforms.slack.people import People, labels_of, options_of
from tests.platforms.slack.state import Refused
from tests.platforms.slack.world import controls

STATELESS = frozenset(["button", "overflow"])


@dataclass(frozen=True)
class Submitted:
    """What became of a submitted modal: closed, errors, updated, pushed, cleared; late (no answer in
    time, the modal stays); refused (the client itself did not let it go)."""

    outcome: str
    errors: Mapping[str, str] = field(default_factory=dict)
    delivery: Delivery | None = None


class Clicks(People):
    """People who press."""

    # ---- controls of messages

    def press(self, user: str, channel: str, ts: str, label: str) -> Delivery:
        """Press a button, or pick the option of a select, overflow, radio or checkbox, by its words in
        the message as it is now. AssertionError when there is no such control."""
        return self._act(user, channel, ts, label, None)

    def choose(self, user: str, channel: str, ts: str, labels: Sequence[str]) -> Delivery:
        """Set a multi select or a group of checkboxes to exactly these options."""
        return self._act(user, channel, ts, labels[0], labels)

    def _act(self, user: str, channel: str, ts: str, label: str, labels: Sequence[str] | None) -> Delivery:
        hidden = next((entry for entry in self.ephemeral[user] if entry["ts"] == ts), None)
        place = self.channels[channel]
        message = hidden or place.messages.get(ts)
        assert message is not None, f"there is no message {ts} in {channel}"
        blocks = message.get("blocks", [])
        values = self._state_of(user, f"{channel}:{ts}", blocks)
        action = self._action(blocks, values, label, labels)
        container: Json = {"type": "message", "message_ts": ts, "channel_id": channel}
        container["is_ephemeral"] = hidden is not None
        thread = message.get("thread_ts", "")
        if thread:
            container["thread_ts"] = thread
        payload = self.interaction(
            "block_actions",
            user,
            container=container,
            trigger_id=self.new_trigger(user),
            channel=self.place(place),
            state={"values": copy.deepcopy(values)},
            response_url=self.new_response_url(
                user, channel, thread_ts=thread, message_ts=ts, ephemeral=hidden is not None
            ),
            actions=[action],
        )
        if hidden is None:
            payload["message"] = copy.deepcopy(message)
        return self.deliver("interactive", payload, user)

    def _state_of(self, user: str, key: str, blocks: list[Json]) -> Json:
        """What this person has chosen on a surface so far, by block and action."""
        old = self.states.get((user, key), {})
        values: Json = {}
        for block in blocks:
            for control in controls(block):
                if control["type"] in STATELESS:
                    continue
                kept = old.get(block["block_id"], {}).get(control["action_id"])
                fresh = kept or initial_value(control)
                values.setdefault(block["block_id"], {})[control["action_id"]] = fresh
        self.states[(user, key)] = values
        return values

    def _action(self, blocks: list[Json], values: Json, label: str, labels: Sequence[str] | None) -> Json:
        block, control, option = found(blocks, label)
        action: Json = {
            "type": control["type"],
            "action_id": control["action_id"],
            "block_id": block["block_id"],
            "action_ts": self.new_ts(),
        }
        if option is None:
            kept = {name: control[name] for name in ("text", "value", "style", "url") if name in control}
            return action | copy.deepcopy(kept)
        if control["type"] == "overflow":
            return action | {"selected_option": copy.deepcopy(option)}
        held = values[block["block_id"]][control["action_id"]]
        if "selected_options" in held:
            held["selected_options"] = chosen(control, held["selected_options"], option, labels)
        else:
            held["selected_option"] = copy.deepcopy(option)
        return action | copy.deepcopy(held)

    # ---- modals

    async def submit_view(
        self, user: str, values: Mapping[str, Any] | None = None, within: float = 30.0
    ) -> Submitted:
        """Fill in fields (by label, block_id or action_id) of the modal on top, submit it, and wait for
        what becomes of it. Fields that are not named keep what they hold."""
        view = self.view(user)
        assert view is not None, f"{user} has no modal open"
        for name, value in (values or {}).items():
            self._fill(user, view, name, value)
        if wrong := self._client_errors(user, view):
            return Submitted("refused", wrong)
        payload = self.interaction(
            "view_submission",
            user,
            trigger_id=self.new_trigger(user, view["id"]),
            view=self.refresh_view(view),
            response_urls=[],
        )
        delivery = self.deliver("interactive", payload, user)
        await self.wait_for(lambda: delivery.acked or bool(delivery.failed), within)
        if delivery.failed:
            return Submitted("late", delivery=delivery)
        outcome = self._answered(user, view, delivery.answer)
        self.changed()
        errors = delivery.answer.get("errors", {}) if outcome == "errors" else {}
        return Submitted(outcome, errors, delivery)

    def _fill(self, user: str, view: Json, name: str, value: Any) -> None:
        for block in view["blocks"]:
            for control in controls(block):
                names = (block["block_id"], control["action_id"], block.get("label", {}).get("text"))
                if name in names and control["type"] not in STATELESS:
                    held = self.states[(user, view["id"])][block["block_id"]][control["action_id"]]
                    _set(control, held, value)
                    return
        raise AssertionError(f"no field {name!r} in this modal")

    def _client_errors(self, user: str, view: Json) -> dict[str, str]:
        """What Slack's client refuses before it asks the app."""
        wrong = {}
        values = self.states[(user, view["id"])]
        for block in view["blocks"]:
            if block["type"] == "input":
                control = block["element"]
                held = values[block["block_id"]][control["action_id"]]
                if words := client_error(block, control, held):
                    wrong[block["block_id"]] = words
        return wrong

    def _answered(self, user: str, view: Json, answer: Json) -> str:
        stack = self.views[user]
        match answer.get("response_action"):
            case None:
                self.views[user] = [entry for entry in stack if entry is not view]
                return "closed"
            case "clear":
                stack.clear()
                return "cleared"
            case "errors":
                inputs = {block["block_id"] for block in view["blocks"] if block["type"] == "input"}
                if not answer.get("errors") or not answer["errors"].keys() <= inputs:
                    self.failures.append(f"errors for fields that are not there: {answer}")
                return "errors"
            case "update" | "push" as action:
                try:
                    new = checked_view(self, answer.get("view"), "modal")
                except Refused as refusal:
                    self.failures.append(f"response_action {action}: {refusal.more}")
                    return "late"
                if action == "update":
                    redrawn(self, view, new)
                    return "updated"
                if len(stack) >= limits.VIEW_STACK:
                    self.failures.append("more than three modals on top of each other")
                stack.append(stored_view(self, user, new, view))
                return "pushed"
        self.failures.append(f"an unknown response_action: {answer}")
        return "late"

    def close_view(self, user: str) -> list[Delivery]:
        """Close the modal on top; the app is told when it asked to be."""
        view = self.view(user)
        assert view is not None, f"{user} has no modal open"
        self.views[user] = [] if view["clear_on_close"] else self.views[user][:-1]
        self.changed()
        if not view["notify_on_close"]:
            return []
        shown = self.refresh_view(view)
        payload = self.interaction("view_closed", user, view=shown, is_cleared=view["clear_on_close"])
        return [self.deliver("interactive", payload, user)]

    def press_view(self, user: str, label: str) -> Delivery:
        """Press a control of the modal on top."""
        view = self.view(user)
        assert view is not None, f"{user} has no modal open"
        return self._act_in_view(user, view, label)

    def _act_in_view(self, user: str, view: Json, label: str) -> Delivery:
        values = self._state_of(user, view["id"], view["blocks"])
        action = self._action(view["blocks"], values, label, None)
        payload = self.interaction(
            "block_actions",
            user,
            container={"type": "view", "view_id": view["id"]},
            trigger_id=self.new_trigger(user, view["id"] if view["type"] == "modal" else ""),
            view=self.refresh_view(view),
            actions=[action],
        )
        return self.deliver("interactive", payload, user)

    # ---- App Home

    def open_home(self, user: str, tab: str = "home") -> list[Delivery]:
        """A person opens the app's home."""
        event: Json = {
            "type": "app_home_opened",
            "user": user,
            "channel": self.direct(user).id,
            "tab": tab,
            "event_ts": self.new_ts(),
        }
        if tab == "home" and user in self.homes:
            event["view"] = self.refresh_view(self.homes[user])
        return self.fire(event, None, user)

    def press_home(self, user: str, label: str) -> Delivery:
        """Press a control of the App Home as it is now."""
        assert user in self.homes, f"{user} has no App Home yet"
        return self._act_in_view(user, self.homes[user], label)

    # ---- commands and shortcuts

    def slash(self, user: str, channel: str, text: str, command: str = "/threadgate") -> Delivery:
        """A person types a native command."""
        person, place = self.users[user], self.channels[channel]
        assert command in self.app.commands, f"the app has no command {command}"
        assert "commands" in self.app.scopes and person.team == "T1", f"{user} cannot use commands of the app"
        form = {
            "token": self.app.verification,
            "team_id": "T1",
            "team_domain": self.teams["T1"]["domain"],
            "channel_id": channel,
            "channel_name": self.place(place)["name"],
            "user_id": user,
            "user_name": person.name,
            "command": command,
            "text": text,
            "api_app_id": self.app.id,
            "is_enterprise_install": "false",
            "response_url": self.new_response_url(user, channel),
            "trigger_id": self.new_trigger(user),
        }
        return self.deliver("slash_commands", form, user, self._command_answered)

    def _command_answered(self, delivery: Delivery) -> None:
        if delivery.answer.get("text") or delivery.answer.get("blocks"):
            self.respond(delivery.user, delivery.payload["channel_id"], delivery.answer)

    def respond(self, user: str, channel: str, body: Json, thread_ts: str = "") -> None:
        """Show what a command's answer or a response_url says."""
        content: Json = {name: body[name] for name in ("text", "blocks", "attachments") if name in body}
        if "blocks" in content:
            content["blocks"] = self.with_ids(copy.deepcopy(content["blocks"]))
        thread = body.get("thread_ts") or thread_ts
        if thread:
            content["thread_ts"] = thread
        if body.get("response_type") == "in_channel":
            self.post_from_bot(self.channels[channel], content)
            return
        shown = {"channel": channel, "user": user, "ts": self.new_ts(), **content}
        self.ephemeral[user].append(shown)
        self.page(channel, shown, parsed=False)
        self.changed()

    def shortcut(self, user: str, channel: str, ts: str, callback_id: str = "ask_about") -> Delivery:
        """A person uses a message shortcut."""
        assert callback_id in self.app.shortcuts, f"the app has no shortcut {callback_id}"
        message = self.channels[channel].messages[ts]
        payload = self.interaction(
            "message_action",
            user,
            callback_id=callback_id,
            trigger_id=self.new_trigger(user),
            message_ts=ts,
            action_ts=self.new_ts(),
            response_url=self.new_response_url(user, channel, message_ts=ts),
            channel=self.place(self.channels[channel]),
            message=copy.deepcopy(message),
        )
        return self.deliver("interactive", payload, user)


def found(blocks: list[Json], label: str) -> tuple[Json, Json, Json | None]:
    """Block, control and option with these words. AssertionError when there are none."""
    for block in blocks:
        for control in controls(block):
            if control.get("text", {}).get("text") == label:
                return block, control, None
            for option in options_of(control):
                if option["text"]["text"] == label:
                    return block, control, option
    raise AssertionError(f"nothing here says {label!r}, only {labels_of(blocks)}")


def chosen(control: Json, held: list[Json], option: Json, labels: Sequence[str] | None) -> list[Json]:
    """The options that are chosen after a press (which adds or takes away), or exactly those named."""
    offered = options_of(control)
    if labels is not None:
        names = [entry["text"]["text"] for entry in offered]
        assert set(labels) <= set(names), f"not all of {labels} are offered, only {names}"
        wanted = [entry for entry in offered if entry["text"]["text"] in labels]
    elif option in held:
        wanted = [entry for entry in held if entry != option]
    else:
        wanted = [*held, option]
    assert len(wanted) <= control.get("max_selected_items", len(offered)), "more than may be chosen"
    return copy.deepcopy(wanted)


def _set(control: Json, held: Json, value: Any) -> None:
    """Put a value into one field of a modal."""
    if "selected_options" in held:
        held["selected_options"] = [_option(control, entry) for entry in value]
    elif "selected_option" in held:
        held["selected_option"] = None if value is None else _option(control, value)
    else:
        name = next(name for name in held if name != "type")
        held[name] = value


def _option(control: Json, wanted: str) -> Json:
    for option in options_of(control):
        if wanted in (option["text"]["text"], option["value"]):
            return copy.deepcopy(option)
    raise AssertionError(
        f"{wanted!r} is not offered, only {[o['text']['text'] for o in options_of(control)]}"
    )


def client_error(block: Json, control: Json, held: Json) -> str:
    """Why the client does not let this field go, "" when it does."""
    value = next((entry for name, entry in held.items() if name != "type"), None)
    if not value:
        return "" if block.get("optional") else "Please complete this required field."
    if control["type"] == "number_input":
        return _number_error(control, str(value))
    if isinstance(value, str):
        if units(value) < control.get("min_length", 0):
            return "This is too short."
        if units(value) > control.get("max_length", limits.INPUT_TEXT):
            return "This is too long."
    return ""


def _number_error(control: Json, value: str) -> str:
    try:
        number = float(value)
    except ValueError:
        return "Please enter a number."
    if not control["is_decimal_allowed"] and not number.is_integer():
        return "Please enter a whole number."
    low, high = control.get("min_value", "-inf"), control.get("max_value", "inf")
    return "" if float(low) <= number <= float(high) else "This number is out of range."
