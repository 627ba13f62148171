"""The calls of one agent as a tree: a node is one sampled answer behind its exact prompt ids."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from assay.agents.errors import AgentRequestError, overflow
from assay.agents.messages import AgentAnswer, AgentMessage, AgentRequest, ToolCall, chain_digests
from assay.agents.rendering import AgentRenderer
from assay.core.canon import digest
from assay.core.errors import ConfigError, DataError
from assay.core.rollout import Call, Completion, Ids, Stop, ids_of
from assay.core.task import Message
from assay.rollout.block import concatenate
from assay.rollout.decode_text import AnswerReader, text_of
from assay.rollout.tool_calls import calls_of

__all__ = ["CallNode", "CallRecorder", "Pose"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pose:
    """What the policy is to go on from.

    Attributes:
        prefix: ``[P]`` ids.
        parent: the answer that it goes on from, or that the client's history names; None for neither.
        history: how the prefix came about, as `assay.core.Call.history` says.
        shown: messages that it shows, as the chat template is given them.
    """

    prefix: Ids
    parent: CallNode | None
    history: str
    shown: tuple[Message, ...]


@dataclass(slots=True, kw_only=True, eq=False)
class CallNode:
    """One call of an agent.

    Attributes:
        name: of the answer, as it travels in the ids that are minted from it.
        order: of its arrival.
        round: calls that came while others were open share one, so that their order does not depend on time.
        pose: what it was asked.
        request: the request, with the thoughts that its opaque fields stand for.
        asked: digest of the request as it was sent.
        completion: what was sampled; None before that.
        text, thought: of the turn, as verifiers read them.
        words, calls: of the turn, as the client is told them.
        chain: digest of the conversation with the answer; empty where it is none.
        history: that conversation as the chat template is given it.
        delivered: the client has read the answer, as far as that can be known.
    """

    name: str
    order: int
    round: int
    pose: Pose
    request: AgentRequest
    completion: Completion | None = None
    text: str = ""
    thought: str | None = None
    words: str = ""
    calls: tuple[ToolCall, ...] = ()
    finish: str = ""
    chain: str = ""
    asked: str = ""
    delivered: bool = False
    history: tuple[Message, ...] = ()

    @property
    def tokens(self) -> Ids:
        """``[P + T]`` ids of prompt and answer."""
        assert self.completion is not None
        return concatenate(self.pose.prefix, self.completion.ids)

    @property
    def depth(self) -> int:
        """How many answers stand before it."""
        return 0 if self.pose.parent is None else self.pose.parent.depth + 1


@dataclass(slots=True, eq=False)
class CallRecorder:
    """Turns requests into prompts, and sampled answers into a tree of calls. No input or output of its own, no clock.

    A request goes on from a recorded answer where its history says the same as that answer's conversation: found by the ids of
    tool calls, encrypted reasoning or signatures that were minted from the answer's name, else by content (JSON arguments by
    value, blanks around texts left out). The tokens then stand as they were sampled, whatever the client made of their text.
    Where the history says something else, it is rendered as it was sent; if it begins with the very tokens of a recorded answer,
    it goes on from that one, else the tree branches.

    Attributes:
        session: name of the session, unique in the run.
        renderer: of the policy.
        limit: most tokens of an answer.
        context: longest prompt plus answer, in tokens.
    """

    session: str
    renderer: AgentRenderer
    limit: int
    context: int
    nodes: list[CallNode] = field(default_factory=list[CallNode])
    _by_name: dict[str, CallNode] = field(default_factory=dict[str, CallNode])
    _by_chain: dict[str, CallNode] = field(default_factory=dict[str, CallNode])
    _asked: dict[str, int] = field(default_factory=dict[str, int])
    _round: int = 0
    _open: int = 0

    def begin(self, request: AgentRequest) -> CallNode:
        """Records a call.

        Raises:
            AgentRequestError: it cannot be written, or leaves no place for an answer.
        """
        sent, request = request.digest, self._resolve(request)
        pose = self.pose(request)
        if len(pose.prefix) >= self.context:
            raise overflow(len(pose.prefix), self.context)
        if not len(pose.prefix):
            raise AgentRequestError("the prompt is empty", code="invalid_prompt")
        asked, parent = request.digest, pose.parent.name if pose.parent else ""
        number = self._asked[asked] = self._asked.get(asked, -1) + 1
        name = digest([self.session, parent, asked, number])[:16]
        self._round += not self._open
        self._open += 1
        node = CallNode(name=name, order=len(self.nodes), round=self._round, pose=pose, request=request, asked=sent)
        self.nodes.append(node)
        self._by_name[name] = node
        return node

    def most(self, node: CallNode) -> int:
        """Most tokens of a call's answer."""
        asked = node.request.max_tokens or self.limit
        return min(self.limit, asked, self.context - len(node.pose.prefix))

    def end(self, node: CallNode, completion: Completion | None) -> None:
        """Records what was sampled; None where nothing was."""
        self._open -= 1
        if completion is None:
            return
        tokenizer, request = self.renderer.tokenizer, node.request
        node.completion = completion
        node.thought, node.text = AnswerReader.of(tokenizer).read(node.pose.prefix, completion.ids, completion)
        node.calls, node.words = self._calls(node)
        node.finish = "tool_calls" if node.calls else "stop" if completion.stop is Stop.DONE else "length"
        node.history = (*node.pose.shown, Message("assistant", text_of(tokenizer, completion.ids, completion)))
        if request.prompt is None:
            said = self.answer(node).message
            node.chain = chain_digests(request.tools, (*request.messages, said))[-1]
            alike = self._by_chain.get(node.chain)
            if alike is None or node.name < alike.name:
                self._by_chain[node.chain] = node

    def answer(self, node: CallNode) -> AgentAnswer:
        """A call's answer, for the formats."""
        assert node.completion is not None
        decode = self.renderer.tokenizer.decode
        return AgentAnswer(
            name=node.name,
            text=node.words,
            thought=node.thought,
            calls=node.calls,
            finish=node.finish,
            prompt=node.pose.prefix,
            completion=node.completion,
            pieces=tuple(decode([i]) for i in node.completion.ids.tolist()) if node.request.logprobs else (),
            model=node.request.model,
        )

    def calls(self) -> tuple[Call, ...]:
        """The calls as records, parents first, in an order that does not depend on time where calls were open together.

        Answers that nobody acted on carry no loss (`Call.shared`): those that never reached the client, those that it threw away
        because they were cut off, and those of `side_calls`.
        """
        done = sorted((n for n in self.nodes if n.completion is not None), key=lambda n: (n.round, n.depth, n.name))
        places = {node.name: i for i, node in enumerate(done)}
        used = self._continued_names() | {n.name for n in done if n.delivered and not self._thrown_away(n)}
        aside = {node.name for node in self.side_calls()}
        out: list[Call] = []
        for i, node in enumerate(done):
            assert node.completion is not None
            parent = places.get(node.pose.parent.name) if node.pose.parent else None
            call = Call(
                id=i,
                parent=parent,
                prefix=node.pose.prefix,
                completion=node.completion,
                text=node.text,
                thought=node.thought,
                shared=node.name not in used or node.name in aside,
                history=node.pose.history,
            )
            out.append(call)
        return tuple(out)

    def side_calls(self) -> list[CallNode]:
        """Calls for a title or a summary: without tools and alone, where others have tools."""
        done = [n for n in self.nodes if n.completion is not None]
        if not any(n.request.tools for n in done):
            return []
        continued = self._continued_names()
        return [n for n in done if not n.request.tools and n.pose.parent is None and n.name not in continued]

    def last(self) -> CallNode | None:
        """The last call that is no side call; None without one."""
        aside = self.side_calls()
        found = [n for n in self.nodes if n.completion is not None and n not in aside]
        return found[-1] if found else None

    def _continued_names(self) -> set[str]:
        """Names of answers that a later call goes on from."""
        return {n.pose.parent.name for n in self.nodes if n.pose.parent is not None}

    def _thrown_away(self, node: CallNode) -> bool:
        """Whether an answer was cut off, and the same asked again for a longer one."""
        if node.finish != "length":
            return False
        return any(
            later.order > node.order
            and later.request.messages == node.request.messages
            and (later.request.max_tokens or self.limit) > (node.request.max_tokens or self.limit)
            for later in self.nodes
        )

    # ---- what a request goes on from ---------------------------------------------------------------------------------

    def pose(self, request: AgentRequest) -> Pose:
        """What a request asks the policy to go on from; raises as `begin`."""
        found, at = self._find_continued(request)
        if found is not None:
            try:
                more, shown = self.renderer.following(found.history, request.messages[at:])
            except (ConfigError, DataError):
                pass  # the template cannot write these messages there: the whole is rendered
            else:
                same = _as_sent(self.answer(found).message) == _as_sent(request.messages[at - 1])
                eos = self.renderer.tokenizer.eos
                end = ids_of([] if found.tokens[-1] == eos else [eos])
                prefix = concatenate(found.tokens, end, more)
                return Pose(prefix=prefix, parent=found, history="exact" if same else "spliced", shown=(*found.history, *shown))
        prefix, shown = self.renderer.opening(request)
        extended = self._find_longest_prefix(prefix)
        if extended is not None:
            return Pose(prefix=prefix, parent=extended, history="prefix", shown=shown)
        named = self._find_by_id(request.messages)
        began = any(m.role == "assistant" for m in request.messages) and any(n.completion is not None for n in self.nodes)
        return Pose(prefix=prefix, parent=named, history="rendered" if named is not None or began else "", shown=shown)

    def _find_continued(self, request: AgentRequest) -> tuple[CallNode | None, int]:
        """The answer whose conversation the request's history repeats, and where its new messages begin."""
        chain = chain_digests(request.tools, request.messages)
        for at in range(len(request.messages), 0, -1):
            message = request.messages[at - 1]
            if message.role != "assistant" or at == len(request.messages):
                continue
            node = self._by_chain.get(chain[at])
            if node is None:
                continue
            for name in message.named_nodes:  # of several that said the same, the one that the client was given
                named = self._by_name.get(name)
                if named is not None and named.chain == chain[at]:
                    return named, at
            return node, at
        return None, 0

    def _find_longest_prefix(self, prefix: Ids) -> CallNode | None:
        """The recorded call with most tokens whose prompt and answer the prefix begins with."""
        best: CallNode | None = None
        for node in self.nodes:
            if node.completion is None or not len(node.completion.ids):
                continue
            tokens = node.tokens
            if (
                len(tokens) <= len(prefix)
                and (prefix[: len(tokens)] == tokens).all()
                and len(tokens) > (len(best.tokens) if best else 0)
            ):
                best = node
        return best

    def _find_by_id(self, messages: Sequence[AgentMessage]) -> CallNode | None:
        """The last recorded answer that opaque fields of a history name."""
        for message in reversed(messages):
            for name in message.named_nodes:
                if (node := self._by_name.get(name)) is not None and node.completion is not None:
                    return node
        return None

    def _resolve(self, request: AgentRequest) -> AgentRequest:
        """The request with the thoughts that opaque fields stand for, and those that a client moved into the text."""
        if not any(m.role == "assistant" for m in request.messages):
            return request
        return replace(request, messages=tuple(map(self._with_thought, request.messages)))

    def _with_thought(self, message: AgentMessage) -> AgentMessage:
        if message.role != "assistant" or message.thought:
            return message
        node = self._by_name.get(message.node)
        if node is not None and node.thought:
            return replace(message, thought=node.thought)
        tags = self.renderer.thinking
        if tags is None or tags.close not in message.text:
            return message
        thought, text = tags.split(message.text)
        return replace(message, thought=thought, text=text)

    def _calls(self, node: CallNode) -> tuple[tuple[ToolCall, ...], str]:
        """Calls of the request's tools, and the words in front of them; one of no form that can be read leaves all as text."""
        if not (node.request.tools and node.request.reads_calls):
            return (), node.text
        known = frozenset(entry["function"]["name"] for entry in json.loads(node.request.tools))
        asked = calls_of(node.text, known)
        if not asked or any(call.wrong for call in asked):
            return (), node.text
        before, tag, _ = node.text.partition("<tool_call>")
        made = tuple(ToolCall("", call.name, json.dumps(call.arguments or {}, ensure_ascii=False)) for call in asked)
        return made, before.strip() if tag else ""


def _as_sent(message: AgentMessage) -> tuple[object, ...]:
    return message.text, message.thought or "", [(call.name, call.arguments) for call in message.calls]
