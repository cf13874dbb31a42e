//! The tests of this crate, in one program: a module for each behaviour, grouped by the part that
//! shows it. To run some of them, name their path: `cargo test --test it framing::sse`.
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

/// Framing: splitting bytes into frames.
mod framing {
    mod content_length;
    mod long_line;
    mod noise;
    mod objects;
    mod split_utf8;
    mod sse;
    mod sse_or_objects;
}

/// Laws that hold for every dialect; most of these tests run every transcript.
mod laws {
    mod a_log_is_continued;
    mod any_split_same_output;
    mod batches_lose_nothing;
    mod decoding_is_linear;
    mod decoding_never_fails;
    mod emitted_once;
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
    mod requests_are_resolved_once;
    mod same_content_in_every_dialect;
    mod secrets_stay_secret;
    mod turn_never_ended;
}

/// Reading, independent of the dialect.
mod reading {
    mod added_events;
    mod both_sides;
    mod drift;
    mod odd_json;
    mod recognising_dialects;
    mod repeated_records;
    mod turns_of_the_caller;
}

/// The events that the grammar adds, completes and withdraws.
mod grammar {
    mod client_calls;
    mod expected_turn;
    mod filled_in_fields;
    mod host_facts;
    mod open_requests;
    mod paused_turn;
    mod refused_plan;
    mod structured_answer;
    mod withdrawn_text;
}

/// Behaviour of a single dialect: a folder if it has several test files, else a file.
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
    mod anthropic_api {
        mod arguments;
        mod reading;
        mod rules;
    }
    mod claude {
        mod deferred;
        mod partial;
        mod questions;
        mod results;
        mod rules;
        mod session;
        mod superseded;
        mod tools;
    }
    mod codex_app_server_reading;
    mod copilot_headless_reading;
    mod copilot_reading;
    mod events_schema;
    mod gemini_api {
        mod reading;
        mod rules;
    }
    mod giselle_stream;
    mod goose_ends;
    mod goose_plan;
    mod openai_chat {
        mod calls;
        mod reading;
        mod rules;
    }
    mod openai_responses {
        mod reading;
        mod rules;
    }
    mod opencode_events;
    mod pi_turns;
    mod questions;
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

/// The mappers for embedding, each from one protocol to another.
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

// The benchmarks refer to their own modules from the root of their program.
mod benchmark_corpora;
#[path = "../../benches/corpus.rs"]
mod corpus;
#[path = "../../benches/limit/mod.rs"]
mod limit;
#[path = "../../benches/pairs/mod.rs"]
mod pairs;
