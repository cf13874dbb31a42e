//! What the events of an agent contain, and the history that is made of them does not.

use std::collections::{BTreeMap, BTreeSet};

use interlingua::event::{Block, BlockEnded, BlockKind, Withdrawn};
use serde_json::Value;

/// What is left out of a history.
#[derive(Debug, Clone, Default)]
pub(super) struct Omitted {
    /// The blocks that are not text, by their numbers. One that is withdrawn is not missing.
    blocks: BTreeMap<u64, BlockKind>,
    /// The calls that started sub-agents.
    sub_agents: BTreeSet<String>,
    /// The parts of results, by whether they are images.
    images: usize,
    unknown: usize,
}

impl Omitted {
    /// A block has ended.
    pub(super) fn ended(&mut self, ended: &BlockEnded<'_>) {
        self.add(ended.block, &ended.kind);
    }

    /// A block that was not streamed.
    pub(super) fn block(&mut self, block: &Block<'_>) {
        self.add(block.block, &block.kind);
    }

    fn add(&mut self, number: u64, kind: &BlockKind) {
        if *kind != BlockKind::Text {
            self.blocks.insert(number, kind.clone());
        }
    }

    pub(super) fn withdrawn(&mut self, withdrawn: &Withdrawn<'_>) {
        for block in &withdrawn.blocks {
            self.blocks.remove(&block.block);
        }
    }

    /// An event of the sub-agent that a call started.
    pub(super) fn sub_agent(&mut self, call: String) {
        self.sub_agents.insert(call);
    }

    /// A part of a result that is not kept.
    pub(super) fn part(&mut self, part: &Value) {
        let is_image = part.get("type").and_then(Value::as_str).is_some_and(|it| it == "image");
        if is_image { self.images += 1 } else { self.unknown += 1 }
    }

    /// Describes it for the user, each kind once.
    pub(super) fn losses(&self) -> Vec<String> {
        let count =
            |is_it: fn(&BlockKind) -> bool| self.blocks.values().filter(|it| is_it(it)).count();
        let is_reasoning =
            |kind: &BlockKind| matches!(kind, BlockKind::Reasoning | BlockKind::HiddenReasoning);
        let reasoning = count(is_reasoning);
        let images = count(|kind| *kind == BlockKind::Image);
        let others = self.blocks.len() - reasoning - images;
        let all = [
            (reasoning, "its reasoning, which is bound to its model"),
            (self.sub_agents.len(), "what its sub-agents did, apart from their results"),
            (images + self.images, "images"),
            (others + self.unknown, "content of an unknown kind"),
        ];
        let all = all.into_iter().filter(|(count, _)| *count > 0);
        all.map(|(count, what)| format!("left out of the earlier session: {what} ({count})"))
            .collect()
    }
}
