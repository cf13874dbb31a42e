//! The tests of this crate, in one program: a module for each behaviour, grouped by what it is a
//! behaviour of. To run some of them, name their path: `cargo test --test it framing::sse`.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "all of this is a test"
)]

mod support;

/// Bytes into frames.
mod framing {
    mod long_line;
    mod noise;
    mod objects;
    mod split_utf8;
    mod sse;
}

/// What holds for every dialect; most of these run every transcript.
mod laws {
    mod any_split_same_output;
    mod decoding_is_linear;
    mod decoding_never_fails;
    mod entries_are_a_log;
    mod events_carry_everything;
    mod every_byte_accounted_for;
    mod every_frame_has_a_fate;
    mod honest_numbers;
    mod identity;
    mod ids_are_scoped_to_a_run;
    mod joining_anywhere;
    mod long_lines_and_limits;
    mod noise_between_records;
    mod orphan_tool_call;
    mod said_twice;
    mod same_story_in_every_dialect;
    mod secrets_stay_secret;
    mod turn_never_ended;
}

/// What a reader makes of its input, whatever the dialect.
mod reading {
    mod both_sides;
    mod drift;
    mod elsewhere;
    mod odd_json;
    mod recognising_dialects;
}

/// What the grammar adds to a stream, and what it takes back.
mod grammar {
    mod refused_plan;
    mod structured_answer;
    mod what_the_grammar_knows;
    mod withdrawn_text;
}

/// What only one dialect does: a folder where it has several behaviours, else a file.
mod dialect {
    mod acp {
        mod agents;
        mod reading;
        mod round_trip;
        mod rules;
        mod schema;
        mod writing;
    }
    mod ag_ui {
        mod events;
        mod rules;
    }
    mod agent_event {
        mod rules;
        mod stream;
        mod todos;
    }
    mod ai_sdk {
        mod calls;
        mod parts;
        mod rules;
    }
    mod claude {
        mod partial;
        mod questions;
        mod results;
        mod rules;
        mod session;
        mod superseded;
        mod tools;
    }
    mod codex_app_server_reading;
    mod copilot_reading;
    mod events_schema;
    mod giselle_stream;
    mod goose_ends;
    mod goose_plan;
    mod opencode_events;
    mod pi_turns;
    mod qwen_reading;
    mod text_lines;
    mod text_view;
    mod ui_message {
        mod chunks;
        mod rules;
    }
    mod yume {
        mod compliance;
        mod counts;
        mod drawing;
        mod early_error;
        mod file_changes;
        mod long_text;
        mod losses;
        mod message_stop;
        mod pretty_printed;
        mod reading;
        mod rules;
        mod sign_in;
        mod usage_rules;
    }
}

/// The single bridges for embedding.
mod mapper {
    mod codex_mapper;
    mod gemini_parser;
    mod ndjson_mapper;
    mod prompts;
    mod relay_responses;
}

mod docs;
mod fuzz_corpora;
mod transcripts;

// The benchmarks name their own modules from the root of their program.
mod benchmark_corpora;
#[path = "../../benches/corpus.rs"]
mod corpus;
#[path = "../../benches/limit/mod.rs"]
mod limit;
#[path = "../../benches/pairs/mod.rs"]
mod pairs;
