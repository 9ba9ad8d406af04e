"""What counts as the DRI's yes, and everything that must not."""

import re
import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.model.answer import Answer, Approve, Chatter, Deny, Unclear, parse_answer, unescape_slack

HERO_ASKS = "> Hero asks: relaunch from step 119500. Answer `approve R7` or `deny R7 because …`."

APPROVALS = {
    "approve": None,
    "Approve": None,
    "  APPROVE  ": None,
    "approve.": None,
    "approve!": None,
    "approve R7": "R7",
    "approve r7": "R7",
    "approve  R7.": "R7",
    "approve R7\r\n": "R7",
    "@hero approve R7": "R7",
    "@Hero: approve R7": "R7",
    "@hero\napprove R7": "R7",
    f"{HERO_ASKS}\n\napprove R7": "R7",
    f"{HERO_ASKS}\napprove R7": "R7",
    "&gt; approve or deny?\napprove R7": "R7",
    "```\nRuntimeError: deny\n```\napprove R7": "R7",
    "Hi @hero,\n\napprove R7\n\nThank you!": "R7",
    "Good morning :pray:\napprove R7\n\U0001f44d\U0001f3fd cheers": "R7",
    "approve\napprove R7": "R7",
    "approve R7\n\n-- \nSam, who never says deny": "R7",
    "approve R7\r\n\r\nOn Mon, 30 Nov 2026 at 03:12, Hero <hero@example.org> wrote:\r\n> approve R8?": "R7",
    "approve R7\n\nOn Mon, 30 Nov 2026 at 03:12, Hero\n<hero@example.org>\nwrote:\n> approve R8?": "R7",
    "approve R7\n\nOn Mon, 30 Nov 2026 at 03:12, Hero <hero@example.org> wrote:\n> >>> a\n>>> b\n>> <p>c": "R7",
}


@pytest.mark.parametrize(("text", "request_id"), APPROVALS.items())
def test_a_line_that_is_exactly_approve_approves(text: str, request_id: str | None) -> None:
    assert parse_answer(text) == Approve(request=request_id)


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("deny", Deny()),
        ("DENY.", Deny()),
        ("deny R7", Deny(request="R7")),
        ("deny because the node is bad", Deny(reason="the node is bad")),
        ("deny R7 because I would approve by day.", Deny(request="R7", reason="I would approve by day.")),
        ("@hero deny r7 BECAUSE lr is wrong!", Deny(request="R7", reason="lr is wrong!")),
        ("deny R7 because loss\nbut call me", Deny(request="R7", reason="loss")),
        ("Sorry, no.\ndeny\nI deny it: R7 starts too late", Unclear(line="deny … I deny it: R7 starts too late")),
        ("Sorry, no.\ndeny R7\nI deny it: R7 starts too late", Deny(request="R7")),
    ],
)  # fmt: skip
def test_a_line_that_is_exactly_deny_denies_with_its_reason(text: str, answer: Answer) -> None:
    assert parse_answer(text) == answer


@pytest.mark.parametrize(
    "text",
    [
        "don't approve",
        "do not approve R7",
        "approve? not yet",
        "approve?",
        "approve!!",
        "approve R7 but use step 120000",
        "approve R7, R8",
        "approve P7",
        "approve R07",
        "approve #7",
        "approve all",
        "R7 approve",
        "approved",
        "I approve R7",
        "@bob approve R7",
        "~approve~",
        "~~approve R7~~",
        "~~nonsense\napprove R7\nnonsense~~",
        "**approve**",
        "- approve R7",
        "||approve||",
        "approve and deny",
        "approve\ndeny",
        "deny\nI approve",
        "deny R7\nsorry, R8 I mean",
        "approve R7\ndeny R8",
        "approve R7\napprove R8",
        "deny R7\ndeny R8",
        "approve R7\nbut only from step 120000",
        "approve R7\nuse step 120000",
        "approve R7\nWait, don\u2019t.",
        "approve R7\nif the eval is fine",
        "approve R7 <!-- not really -->",
        "<del>\napprove R7\n</del>",
        ">>> an old note\napprove R7",
        "deny because",
        "\u0430pprove R7",
        "appr\u043eve",
        "ap\u200bprove R7",
        "approve\u200b",
        "\uff41pprove",
        "yes R7",
        "<@U0HERO> approve R7",
        "<@UOMAR|hero>: approve R7",
        "@hero[bot] approve R7",
        "@omar\napprove R7",
    ],
)
def test_an_attempt_to_decide_in_other_words_is_asked_about(text: str) -> None:
    answer = parse_answer(text)

    assert isinstance(answer, Unclear)
    assert answer.line


@pytest.mark.parametrize(
    "text",
    [
        "> approve R7",
        "&gt; approve R7",
        "  > approve",
        "```\napprove R7\n```",
        "```approve R7```",
        "```look:\napprove R7```",
        "~~~text\napprove\n~~~",
        "```\napprove",
        "    approve R7",
        "\tapprove R7",
        "`approve R7`",
        "`a\napprove R7\nb`",
        "type `approve R7` in the thread",
        "<!-- approve -->",
        "<!--\napprove\n-->",
        "<!-- never closed\napprove",
        "`<!--`\n```\n-->\napprove\n```",
        "Thanks!\n-- \napprove",
        "Seen.\nOn Monday Hero wrote:\napprove R7",
        "The loss looks good at step 4000.",
        "ok, I will look at the plot in an hour",
        "waiting for approval",
        "",
        "   \n\t\n",
    ],
)
def test_what_is_quoted_coded_hidden_or_beside_the_point_is_chatter(text: str) -> None:
    assert parse_answer(text) == Chatter()


@pytest.mark.parametrize(
    "words",
    [
        *(
            "no",
            "reject",
            "Nope",
            "nah",
            "\U0001f44e",
            "?",
            "/s",
            "R9",
            "pending",
            "TEST",
            "do nothing",
            "wrong thread",
        ),
        *("I take it back", "sorry, R2 I mean", "on v5p-128, from step 20", "as soon as the disk is cleaned", "at 5pm"),
        *("please don\u2019t", "thanks but no thanks", "hi Omar", "`R8`", "    no", "~~~\nno\n~~~", "```\nno", "- no"),
        *("```\nx\n``` no", "> x\u2028no", "--\nno", "__________\nno"),
        *("On second thought, as I wrote:\n> no", "On 30 Nov 2026 Hero wrote:\n> R7?\n\nno", "$$", "||", "(", "~"),
    ],
)
def test_an_approval_stands_beside_no_other_words(words: str) -> None:
    assert isinstance(parse_answer(f"approve R7\n{words}"), Unclear)
    assert not isinstance(parse_answer(f"{words}\napprove R7"), Approve)


@pytest.mark.parametrize(
    "text",
    [
        "<?\napprove R7\n?>",
        "<![CDATA[\napprove R7\n]]>",
        "<!X\napprove R7\n>",
        "<!---->\napprove R7",
        "<a title='\napprove R7\n'>",
        "</p\napprove R7\n>",
        "> <a title='\napprove R7\n> '>",
        "> <details>\n\napprove R7",
        "> ~~a\napprove R7\n> b~~",
        "> `a\nthanks\napprove R7\n> b`",
        "[x]: y (\napprove R7\n)",
        "[^1]: approve R7",
        "[^1]: x\napprove R7",
        "> [^1]: x\napprove R7",
        "$$\napprove R7\n$$",
    ],
)
def test_what_a_viewer_may_hide_is_asked_about(text: str) -> None:
    assert isinstance(parse_answer(text), Unclear)


@pytest.mark.parametrize(
    "text", ["lgtm", "LGTM!", "yes", "ok", "@hero yes", "no", "\U0001f44d", ":+1: :rocket:", "R7", "\u2705\ufe0f"]
)
def test_a_bare_assent_is_asked_about(text: str) -> None:
    assert isinstance(parse_answer(text), Unclear)


def test_with_its_names_known_only_the_bot_may_be_addressed() -> None:
    names = {"U0HERO", "hero-staging"}

    assert parse_answer("<@U0HERO> approve R7", bot=names) == Approve(request="R7")
    assert parse_answer("@hero-staging approve R7", bot=names) == Approve(request="R7")
    assert isinstance(parse_answer("<@U0BOB> approve R7", bot=names), Unclear)


def test_slack_text_is_unescaped_once() -> None:
    assert unescape_slack("a &lt;b&gt; &amp;amp; &amp;lt;") == "a <b> &amp; &lt;"


def test_a_megabyte_of_backticks_and_tildes_is_read_in_reasonable_time() -> None:
    for hostile in ("` `` " * 200_000, "~" * 1_000_000, "<!--" * 250_000, "> " * 500_000, "on\n" * 300_000):
        assert not isinstance(parse_answer(hostile), Approve)


HOSTILE = st.text(
    st.sampled_from([*string.ascii_letters, *" \t\r\n`~<>!-&;.@#\x00\x0b\u200b\u2028\ud800\u0430\U0001f44d"]),
    max_size=60,
)
WORDS = st.sampled_from(
    [
        "approve",
        "approve R7",
        "deny R7",
        "deny because x",
        "\n",
        "\r\n",
        "> ",
        "```",
        "`",
        "~",
        "<!--",
        "-->",
        "but",
        "?",
        " ",
        "-- \n",
    ]
)
TEXTS = st.one_of(st.text(), HOSTILE, st.lists(WORDS, max_size=14).map("".join))
QUALIFIERS = st.sampled_from(["but", "unless", "if", "not yet", "don't", "except", "wait", "only", "until", "instead"])


@given(TEXTS)
def test_reading_never_raises_and_approves_only_an_exact_line(text: str) -> None:
    answer = parse_answer(text)

    if isinstance(answer, Approve):
        own = re.split(r"[\r\n]", text)
        assert any(re.fullmatch(r"(?ai)(@hero )?approve(\s+R\d+)?[.!]?", line.strip()) for line in own)


@given(
    st.text(string.ascii_letters + " \n", max_size=40),
    QUALIFIERS,
    st.sampled_from(["approve R7 {}", "{} approve R7", "approve R7\n{}", "{}\napprove R7", "approve {} R7"]),
)
def test_a_qualified_approval_is_never_an_approval(rest: str, qualifier: str, form: str) -> None:
    said = form.format(f"{qualifier} it is time")

    assert isinstance(parse_answer(f"{said}\n\n{rest}"), Unclear)


HARMLESS = {
    "approve",
    "thanks",
    "thank",
    "you",
    "ty",
    "please",
    "hi",
    "hello",
    "good",
    "morning",
    "cheers",
    "pray",
    "thumbsup",
}


@given(
    before=st.lists(st.text(string.printable + "\u2028\U0001f44e", max_size=20), max_size=3),
    decision=st.sampled_from(["approve", "approve R7", "@hero approve R7"]),
    after=st.lists(st.text(string.printable, max_size=20), max_size=3),
    word=st.text(string.ascii_letters, min_size=1, max_size=12).filter(lambda word: word.lower() not in HARMLESS),
    is_first=st.booleans(),
)
@example(before=["> x"], decision="approve", after=["> y"], word="no", is_first=False)
@example(before=["```", "x", "```"], decision="approve", after=["```", "x", "```"], word="no", is_first=False)
def test_no_own_word_beside_the_decision_leaves_it_an_approval(
    before: list[str], decision: str, after: list[str], word: str, *, is_first: bool
) -> None:
    said = [word, *before, decision, *after] if is_first else [*before, decision, word, *after]

    assert not isinstance(parse_answer("\n".join(said)), Approve)


@given(TEXTS, st.sampled_from(["> ", ">", "&gt; ", "    "]))
@example("approve R7", "> ")
@example("<!--\n-->approve", "> ")
def test_quoted_lines_never_approve(text: str, mark: str) -> None:
    quoted = "\n".join(mark + line for line in re.split(r"\r\n|\r|\n", text))

    assert parse_answer(quoted) == Chatter()


@given(st.lists(st.sampled_from(["approve", "deny R7", "approve R7 now", "text", ""]), max_size=6).map("\n".join))
def test_nothing_in_a_fence_or_a_comment_decides(text: str) -> None:
    assert parse_answer(f"```\n{text}\n```") == Chatter()
    assert parse_answer(f"<!--\n{text}\n-->") == Chatter()
