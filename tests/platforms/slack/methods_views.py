"""Views: modals that are opened by a trigger, stacked three deep, and everybody's own App Home."""

from __future__ import annotations

import copy
import json
import uuid

from tests.platforms.slack import limits
from tests.platforms.slack.checks import check_view
from tests.platforms.slack.limits import Json, units
from tests.platforms.slack.opinion import second_opinion
from tests.platforms.slack.payloads import Events
from tests.platforms.slack.state import Refused, Trigger
from tests.platforms.slack.web_api import Args, invalid, method
from tests.platforms.slack.world import controls

TRIGGER = "trigger_id interactivity_pointer view:json!"


def checked_view(world: Events, view: object, *kinds: str) -> Json:
    """A view of one of these kinds, as it came. Raises Refused."""
    errors = check_view(view, kinds)
    if errors:
        messages = {"messages": [f"[ERROR] {error}" for error in errors]}
        raise Refused("invalid_arguments", response_metadata=messages)
    assert isinstance(view, dict)
    if units(json.dumps(view, ensure_ascii=False)) > limits.VIEW_JSON:
        raise Refused("view_too_large")
    if objection := second_opinion(view["blocks"], view["type"], view):
        world.failures.append(f"slackblocks refuses what was accepted here: {objection}")
        raise invalid(objection)
    return view


def stored_view(world: Events, user: str, view: Json, previous: Json | None = None) -> Json:
    """A new view of a person. `previous`: the one beneath it."""
    id = world.new_id("V")
    stored = {
        "id": id,
        "user": user,
        "team_id": "T1",
        "app_id": world.app.id,
        "bot_id": world.app.bot_id,
        "app_installed_team_id": "T1",
        "private_metadata": "",
        "callback_id": "",
        "external_id": "",
        "title": None,
        "submit": None,
        "close": None,
        "clear_on_close": False,
        "notify_on_close": False,
        "root_view_id": previous["root_view_id"] if previous else id,
        "previous_view_id": previous["id"] if previous else None,
    }
    external = view.get("external_id")
    if external and any(v["external_id"] == external for stack in world.views.values() for v in stack):
        raise Refused("duplicate_external_id")
    return redrawn(world, stored, view)


def redrawn(world: Events, stored: Json, view: Json) -> Json:
    """A stored view with new content, under a new hash. Values of fields that stay are kept."""
    stored.update(copy.deepcopy(view))
    stored["blocks"] = world.with_ids(stored["blocks"])
    stored["hash"] = f"{int(world.now())}.{uuid.uuid4().hex[:8]}"
    old = world.states.get((stored["user"], stored["id"]), {})
    values: Json = {}
    for block in stored["blocks"]:
        for control in controls(block):
            if control["type"] in {"button", "overflow"}:
                continue
            kept = old.get(block["block_id"], {}).get(control["action_id"])
            fresh = kept if kept and kept["type"] == control["type"] else initial_value(control)
            values.setdefault(block["block_id"], {})[control["action_id"]] = fresh
    world.states[(stored["user"], stored["id"])] = values
    return stored


def initial_value(control: Json) -> Json:
    """What a control holds before anybody touches it, as `state.values` shows it."""
    kind = control["type"]
    match kind:
        case "static_select" | "radio_buttons":
            return {"type": kind, "selected_option": control.get("initial_option")}
        case "multi_static_select" | "checkboxes":
            return {"type": kind, "selected_options": list(control.get("initial_options", []))}
        case "users_select":
            return {"type": kind, "selected_user": control.get("initial_user")}
        case "multi_users_select":
            return {"type": kind, "selected_users": list(control.get("initial_users", []))}
        case "datepicker":
            return {"type": kind, "selected_date": control.get("initial_date")}
        case "timepicker":
            return {"type": kind, "selected_time": control.get("initial_time")}
        case "datetimepicker":
            return {"type": kind, "selected_date_time": control.get("initial_date_time")}
    return {"type": kind, "value": control.get("initial_value")}


def _trigger(world: Events, args: Args) -> Trigger:
    id = args.get("trigger_id") or args.get("interactivity_pointer")
    if not id:
        raise invalid("missing required field: trigger_id")
    trigger = world.triggers.get(id)
    if trigger is None:
        raise Refused("invalid_trigger_id")
    if trigger.used:
        raise Refused("exchanged_trigger_id")
    if world.now() > trigger.expires:
        raise Refused("expired_trigger_id")
    return trigger


@method("views.open", TRIGGER)
def views_open(world: Events, args: Args) -> Json:
    trigger = _trigger(world, args)
    view = checked_view(world, args["view"], "modal")
    trigger.used = True
    world.views[trigger.user] = [stored_view(world, trigger.user, view)]
    world.changed()
    return {"view": world.refresh_view(world.views[trigger.user][-1])}


@method("views.push", TRIGGER)
def views_push(world: Events, args: Args) -> Json:
    trigger = _trigger(world, args)
    view = checked_view(world, args["view"], "modal")
    stack = world.views[trigger.user]
    if not trigger.view or not stack:
        raise Refused("no_view_to_push_onto" if not stack else "invalid_trigger_id")
    if len(stack) >= limits.VIEW_STACK:
        raise Refused("push_limit_reached")
    trigger.used = True
    stack.append(stored_view(world, trigger.user, view, stack[-1]))
    world.changed()
    return {"view": world.refresh_view(stack[-1])}


@method("views.update", "view_id external_id hash view:json!")
def views_update(world: Events, args: Args) -> Json:
    id, external = args.get("view_id"), args.get("external_id")
    for stack in world.views.values():
        for stored in stack:
            if (id and stored["id"] == id) or (external and stored["external_id"] == external):
                view = checked_view(world, args["view"], "modal")
                _same_hash(stored, args)
                redrawn(world, stored, view)
                world.changed()
                return {"view": world.refresh_view(stored)}
    raise Refused("not_found")


def _same_hash(stored: Json, args: Args) -> None:
    if args.get("hash") and args["hash"] != stored["hash"]:
        raise Refused("hash_conflict")


@method("views.publish", "user_id!user_not_found hash view:json!")
def views_publish(world: Events, args: Args) -> Json:
    user = args["user_id"]
    if user not in world.users:
        raise Refused("user_not_found")
    view = checked_view(world, args["view"], "home")
    home = world.homes.get(user)
    if home is None:
        home = stored_view(world, user, view)
    else:
        _same_hash(home, args)
        redrawn(world, home, view)
    world.homes[user] = home
    world.changed()
    return {"view": world.refresh_view(home)}
