"""Files: uploads in three steps, their shares, and downloads that only the bot token opens."""

from __future__ import annotations

from urllib.parse import quote

from aiohttp import web

from tests.platforms.slack.limits import Json
from tests.platforms.slack.payloads import Events
from tests.platforms.slack.state import File, Refused
from tests.platforms.slack.web_api import Args, invalid, method, place

SIGN_IN = "<!DOCTYPE html><html><head><title>Sign in | Slack</title></head><body>Sign in</body></html>"


def public_file(world: Events, file: File, *, for_event: bool = False) -> Json:
    """A file as messages and files.info show it."""
    if for_event and file.remote_only:
        return {"id": file.id, "mode": "file_access", "file_access": "check_file_info"}
    address, name = f"{world.base}/files-pri/T1-{file.id}", quote(file.name.replace("/", "_"), safe="")
    shown: Json = {
        "id": file.id,
        "created": int(world.now()),
        "timestamp": int(world.now()),
        "name": file.name,
        "title": file.title or file.name,
        "mimetype": file.mimetype,
        "filetype": file.name.rpartition(".")[2] or "text",
        "pretty_type": "File",
        "user": file.user,
        "user_team": "T1",
        "editable": False,
        "size": len(file.content or b""),
        "mode": "external" if file.external else "hosted",
        "is_external": bool(file.external),
        "external_type": "gdrive" if file.external else "",
        "is_public": True,
        "public_url_shared": False,
        "display_as_bot": False,
        "username": "",
        "url_private": file.external or f"{address}/{name}",
        "permalink": f"https://acme.slack.com/files/{file.user}/{file.id}/{name}",
        "has_rich_preview": False,
        "file_access": "visible",
    }
    if not file.external:
        shown["url_private_download"] = f"{address}/download/{name}"
    if file.gone:
        return {"id": file.id, "mode": "tombstone"}
    return shown


@method("files.getUploadURLExternal", "filename! length:int! alt_txt snippet_type", scope="files:write")
def get_upload_url(world: Events, args: Args) -> Json:
    if args["length"] <= 0:
        raise invalid("length must be more than 0")
    file = File(world.new_id("F"), args["filename"], world.app.bot_user, length=args["length"])
    world.files[file.id] = file
    return {"upload_url": f"{world.base}/upload/v1/{file.id}", "file_id": file.id}


async def upload(world: Events, request: web.Request) -> web.Response:
    """The address that `upload_url` names."""
    file = world.files.get(request.match_info["id"])
    if file is None or file.content is not None:
        return web.Response(status=404, text="not found")
    content = await _content(request)
    if len(content) != file.length:
        world.failures.append(f"{len(content)} bytes were uploaded where {file.length} were announced")
        return web.Response(status=400, text="length mismatch")
    file.content = content
    world.changed()
    return web.Response(text=f"OK - {len(content)}")


async def _content(request: web.Request) -> bytes:
    if not request.content_type.startswith("multipart/"):
        return await request.read()
    form = await request.post()
    for value in form.values():
        if isinstance(value, web.FileField):
            return value.file.read()
    return b""


@method(
    "files.completeUploadExternal",
    "files:json! channel_id channels:list initial_comment thread_ts blocks:json",
    scope="files:write",
)
def complete_upload(world: Events, args: Args) -> Json:
    files = []
    for entry in args["files"]:
        file = world.files.get(entry.get("id", ""))
        if file is None or file.content is None:
            raise Refused("file_not_found")
        file.title = entry.get("title") or file.name
        files.append(file)
    places = [id for id in [args.get("channel_id"), *(args.get("channels") or [])] if id]
    for id in places:
        if id in world.users:  # a person is no conversation here, as they are in chat.postMessage
            raise Refused("channel_not_found")
        channel = place(world, {"channel": id}, write=True)
        body: Json = {
            "text": args.get("initial_comment") or "",
            "files": [public_file(world, file) for file in files],
            "upload": True,
            "subtype": "file_share",
        }
        if args.get("thread_ts"):
            root = channel.messages.get(args["thread_ts"])
            if root is None:
                raise Refused("thread_not_found")
            if root.get("thread_ts", root["ts"]) != root["ts"]:
                world.failures.append(f"{root['ts']} is a reply and was used as the thread of a file")
            body["thread_ts"] = root["ts"]
        message = world.post_from_bot(channel, body)
        for file in files:
            file.shares.append((channel.id, message["ts"]))
    return {"files": [{"id": file.id, "title": file.title} for file in files]}


@method("files.info", "file!file_not_found count:int cursor limit:int page:int", scope="files:read")
def files_info(world: Events, args: Args) -> Json:
    file = world.files.get(args["file"])
    if file is None:
        raise Refused("file_not_found")
    if file.gone:
        raise Refused("file_deleted")
    shown = public_file(world, file)
    shares: Json = {}
    for channel, ts in file.shares:
        family = "public" if world.channels[channel].kind == "channel" else "private"
        shares.setdefault(family, {}).setdefault(channel, []).append({"ts": ts})
    return {"file": shown | {"shares": shares}, "comments": [], "response_metadata": {"next_cursor": ""}}


async def download(world: Events, request: web.Request) -> web.StreamResponse:
    """`url_private` and `url_private_download`: without the right token a sign-in page, status 200."""
    id = request.match_info["id"].partition("-")[2]
    file = world.files.get(id)
    bearer = request.headers.get("Authorization", "")
    if bearer != f"Bearer {world.app.bot_token}" or "files:read" not in world.app.scopes:
        return web.Response(text=SIGN_IN, content_type="text/html")
    if file is None or file.content is None or file.gone:
        return web.Response(status=404, text="not found")
    if file.moved:
        return web.Response(status=302, headers={"Location": file.moved})
    headers = {"Content-Disposition": f'attachment; filename="{quote(file.name)}"'}
    return web.Response(body=file.content, content_type=file.mimetype, headers=headers)
