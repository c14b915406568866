"""What people write on Slack and Discord reaches the model as they meant it."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.render.inbound import Decoded, discord_decoded, slack_decoded, slack_unescaped
from channels.render.slack import escape_mrkdwn, slack_messages

WORDS = st.text(alphabet=st.one_of(st.sampled_from("ab <>&;@#!|`\\\n*_:,"), st.characters()), max_size=80)


def test_c010_the_wire_text_is_decoded_once_and_links_are_written_out() -> None:
    wire = "alert when disk &gt; 90% &amp;&amp; &amp;lt; &amp;copy; <https://example.com/a?x=1&amp;y=2|docs>"
    assert slack_decoded(wire).text == (
        "alert when disk > 90% && &lt; &copy; docs (https://example.com/a?x=1&y=2)"
    )


def test_c010_echoing_what_was_read_escapes_it_exactly_once() -> None:
    wire = "alert when disk &gt; 90% &amp;&amp; &amp;lt; &amp;copy;"
    assert escape_mrkdwn(slack_decoded(wire).text) == wire
    assert slack_messages("disk \\> 90% \\&\\& \\&lt;")[0].text == "disk &gt; 90% &amp;&amp; &amp;lt;"


@given(WORDS)
def test_c010_whatever_was_typed_on_slack_comes_back_to_the_letter(typed: str) -> None:
    assert slack_decoded(escape_mrkdwn(typed)) == Decoded(text=typed)
    assert slack_unescaped(escape_mrkdwn(typed)) == typed


@given(WORDS)
def test_decoding_slack_text_takes_one_pass_only(wire: str) -> None:
    once = slack_decoded(wire).text
    assert len(once) <= 2 * len(wire)
    assert once.count("&") == wire.count("&") - len(re.findall("&(?:lt|gt);", wire)) or "<" in wire


@pytest.mark.parametrize(
    ("wire", "read"),
    [
        ("ask <@U0A1> or <@U0B2>", "ask @ada or @U0B2"),
        ("ask <@U0B2|grace>", "ask @grace"),
        ("in <#C01|ops-room> and <#C02> and <#C03|>", "in #ops-room and #alerts and #C03"),
        ("<!here> <!channel> <!everyone|everyone>", "@here @channel @everyone"),
        ("<!subteam^S1|@ops> and <!subteam^S2>", "@ops and @S2"),
        ("due <!date^1392734382^{date}^https://x.example|Feb 18th, 2014>", "due Feb 18th, 2014"),
        ("due <!date^1392734382^{date}>", "due 1392734382"),
        ("<https://x.example/a?b=1&amp;c=2>", "https://x.example/a?b=1&c=2"),
        ("<http://x.example|x.example>", "x.example"),
        ("<mailto:a@b.example|a@b.example>", "a@b.example"),
        ("<https://x.example|a &lt;b&gt; &amp;amp;>", "a <b> &amp; (https://x.example)"),
        ("`if a &lt; b` &lt;b&gt;", "`if a < b` <b>"),
        ("`<http://x.example|x.example>`", "`x.example`"),
        ("```\n&lt;@U0A1&gt; <https://x.example>\n```", "```\n<@U0A1> https://x.example\n```"),
        ("an <> empty one, 1 &lt; 2", "an <> empty one, 1 < 2"),
        ("*bold* _it_ ~gone~", "*bold* _it_ ~gone~"),
    ],
)
def test_slack_control_sequences_are_written_as_words(wire: str, read: str) -> None:
    decoded = slack_decoded(wire, users={"U0A1": "ada"}, channels={"C02": "alerts"})
    assert decoded == Decoded(text=read)


@pytest.mark.parametrize(
    ("wire", "read"),
    [
        ("<@UBOT> restart it", "restart it"),
        ("<@UBOT>: restart it", "restart it"),
        ("  <@UBOT|bot>,   restart it", "restart it"),
        ("please <@UBOT> restart it", "please restart it"),
        ("restart it, <@UBOT>", "restart it,"),
        ("restart it (<@UBOT>)", "restart it ()"),
        ("<@UBOT> <@UBOT> hi", "hi"),
        ("<@UBOT>", ""),
        ("<@UBOT>\nfirst\n\nsecond", "first\n\nsecond"),
        ("<@UBOT> `<@UBOT>`", "`<@UBOT>`"),
    ],
)
def test_c036_the_bots_own_mention_on_slack_addresses_it_and_is_taken_out(wire: str, read: str) -> None:
    assert slack_decoded(wire, bot={"UBOT"}) == Decoded(text=read, addressed=True)


@pytest.mark.parametrize(
    "wire",
    ["`<@UBOT> hi`", "```\n<@UBOT>\n```", "&lt;@UBOT&gt; hi", "@UBOT hi", "<@UBOTHER> hi", "no mention"],
)
def test_c036_only_a_real_mention_on_slack_addresses_the_bot(wire: str) -> None:
    assert not slack_decoded(wire, bot={"UBOT"}).addressed


def test_c008_a_broadcast_that_a_person_wrote_does_not_come_back_live() -> None:
    read = slack_decoded("<!channel> tell <@U1> in <#C1|x>").text
    assert slack_messages(read)[0].text == "@channel tell @U1 in #x"


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ("ask <@11> or <@!12> or <@&21>", "ask @ada or @12 or @ops"),
        ("in <#31> and <#32>", "in #alerts and #32"),
        ("fine <:thumb_up:41> <a:party:42>", "fine :thumb_up: :party:"),
        ("at <t:1700000000>", "at 2023-11-14 22:13 UTC"),
        ("at <t:1700000000:t> <t:1700000000:T>", "at 22:13 UTC 22:13:20 UTC"),
        ("on <t:1700000000:D>, <t:1700000000:R>", "on 2023-11-14, 2023-11-14 22:13 UTC"),
        ("never <t:9999999999999:F>", "never <t:9999999999999:F>"),
        ("run </ask now:51>", "run /ask now"),
        ("see <https://x.example>", "see <https://x.example>"),
        ("\\<@11> \\*a\\* \\\\", "\\<@11> \\*a\\* \\\\"),
        ("`<@11>` ``a`<@11>`` ```\n<@11>\n```", "`<@11>` ``a`<@11>`` ```\n<@11>\n```"),
        ("a ` lone <@11>", "a ` lone @ada"),
    ],
)
def test_discord_tokens_are_written_as_words(content: str, read: str) -> None:
    decoded = discord_decoded(content, users={"11": "ada"}, roles={"21": "ops"}, channels={"31": "alerts"})
    assert decoded == Decoded(text=read)


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ("<@99> restart it", "restart it"),
        ("<@!99>, restart it", "restart it"),
        ("please <@&98> restart it", "please restart it"),
        ("<@99> `<@99>`", "`<@99>`"),
    ],
)
def test_c036_the_bots_own_mention_on_discord_addresses_it_and_is_taken_out(content: str, read: str) -> None:
    assert discord_decoded(content, bot={"99", "98"}) == Decoded(text=read, addressed=True)


@pytest.mark.parametrize(
    "content", ["`<@99>`", "```\n<@99>\n```", "\\<@99>", "<@9>", "<#99>", "@99", "a reply that pings", ""]
)
def test_c036_only_a_real_mention_on_discord_addresses_the_bot(content: str) -> None:
    assert not discord_decoded(content, bot={"99"}).addressed


@given(WORDS.filter(lambda text: "<" not in text))
def test_discord_text_without_tokens_is_untouched(content: str) -> None:
    assert discord_decoded(content, bot={"99"}) == Decoded(text=content)


@given(st.text(alphabet="ab<@!&#9>`\\ \n:", max_size=60))
def test_code_on_discord_keeps_every_byte_and_addresses_nobody(code: str) -> None:
    inside = code.replace("`", "'")
    source = f"```\n{inside}\n```"
    assert discord_decoded(source, bot={"9"}) == Decoded(text=source)


@given(st.text(alphabet="ab@UBOT# \n:|", max_size=60))
def test_a_mention_between_words_loses_only_itself(words: str) -> None:
    decoded = slack_decoded(f"{words}<@UX>{words}", bot={"UX"})
    assert decoded.addressed
    assert re.sub(r"[\s,:]", "", decoded.text) == re.sub(r"[\s,:]", "", words * 2)


@pytest.mark.parametrize("decode", [slack_decoded, discord_decoded])
@pytest.mark.parametrize("piece", ["`", "``", "```", "<", "<@", "<@1> ", "&", "`a``", "\\", "```a``", "<:a:"])
def test_decoding_takes_time_in_proportion_to_the_length(decode: Callable[..., Decoded], piece: str) -> None:
    def seconds(times: int) -> float:
        text = piece * times
        begun = time.process_time()
        decode(text, bot={"1"})
        return time.process_time() - begun

    seconds(10)
    longer = min(seconds(16_000), seconds(16_000))  # eight times the text
    assert longer < 30 * max(min(seconds(2000), seconds(2000)), 0.002)
