//! Streams to measure with: the shapes that real agents print, with made-up words in them.
//!
//! Field names and their order are those of Codex 0.166.0, Claude Code 2.1.325 and Gemini CLI
//! 0.61.0. Knows nothing of translation. The same arguments always give the same bytes.

/// Whose stream it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agent {
    Codex,
    Claude,
    Gemini,
}

/// What most of the stream is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Pieces of text, and small records.
    Small,
    /// Records of about a kilobyte.
    Kilobyte,
    /// A few lines of nine megabytes.
    Huge,
}

impl Shape {
    pub(crate) const ALL: [Self; 3] = [Self::Small, Self::Kilobyte, Self::Huge];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Kilobyte => "kilobyte",
            Self::Huge => "huge",
        }
    }
}

/// How much of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// About how long a stream of small or middling records is.
    pub(crate) stream: usize,
    /// About how long a huge line is.
    pub(crate) line: usize,
}

impl Size {
    /// What is measured.
    pub(crate) const FULL: Self = Self { stream: 32 << 20, line: 9_000_000 };
}

/// Makes a stream.
pub(crate) fn generate(agent: Agent, shape: Shape, size: Size) -> Vec<u8> {
    let mut stream = Stream::default();
    match agent {
        Agent::Codex => codex(&mut stream, shape, size),
        Agent::Claude => claude(&mut stream, shape, size),
        Agent::Gemini => gemini(&mut stream, shape, size),
    }
    stream.bytes
}

/// How many pieces a message has where it comes in pieces.
const PIECES: usize = 24;

fn codex(stream: &mut Stream, shape: Shape, size: Size) {
    match shape {
        // The names of the older design, which has pieces, around real items.
        Shape::Small => {
            stream.line(&[
                r#"{"type":"session.created","id":"01a1e08d-5012-7d03-850c-34523f084bee","#,
                r#""model":"gpt-5.3-codex"}"#,
            ]);
            stream.line(&[r#"{"type":"turn.started"}"#]);
            while stream.bytes.len() < size.stream {
                codex_pieces(stream);
                for _ in 0..4 {
                    codex_command(stream, 40);
                }
            }
            stream.line(&[
                r#"{"type":"response.completed","response":{"usage":{"input_tokens":200,"#,
                r#""cached_input_tokens":80,"output_tokens":40}}}"#,
            ]);
        }
        Shape::Kilobyte => {
            codex_start(stream);
            while stream.bytes.len() < size.stream {
                codex_message(stream, 1_000);
                codex_command(stream, 1_000);
                codex_message(stream, 1_000);
            }
            codex_end(stream);
        }
        Shape::Huge => {
            codex_start(stream);
            codex_message(stream, size.line);
            codex_command(stream, size.line);
            let text = stream.text(size.line);
            stream.line(&[r#"{"type":"message.output_text.done","text":""#, &text, r#""}"#]);
            codex_message(stream, 100);
            codex_end(stream);
        }
    }
}

fn codex_start(stream: &mut Stream) {
    stream
        .line(&[r#"{"type":"thread.started","thread_id":"01a1e08d-5012-7d03-850c-34523f084bee"}"#]);
    stream.line(&[r#"{"type":"turn.started"}"#]);
}

fn codex_end(stream: &mut Stream) {
    stream.line(&[
        r#"{"type":"turn.completed","usage":{"input_tokens":200,"cached_input_tokens":80,"#,
        r#""cache_write_input_tokens":0,"output_tokens":40,"reasoning_output_tokens":10}}"#,
    ]);
}

fn codex_pieces(stream: &mut Stream) {
    let mut whole = String::new();
    for _ in 0..PIECES {
        let length = 60 + stream.below(120);
        let piece = stream.text(length);
        stream.line(&[r#"{"type":"message.output_text.delta","delta":""#, &piece, r#""}"#]);
        whole.push_str(&piece);
    }
    stream.line(&[r#"{"type":"message.output_text.done","text":""#, &whole, r#""}"#]);
}

fn codex_message(stream: &mut Stream, length: usize) {
    let (id, text) = (stream.number(), stream.text(length));
    stream.line(&[
        r#"{"type":"item.completed","item":{"id":"item_"#,
        &id,
        r#"","type":"agent_message","text":""#,
        &text,
        r#""}}"#,
    ]);
}

fn codex_command(stream: &mut Stream, length: usize) {
    let (id, words, output) = (stream.number(), stream.plain_words(4), stream.text(length));
    let call = |kind: &str, output: &str, status: &str| {
        format!(
            r#"{{"type":"{kind}","item":{{"id":"item_{id}","type":"command_execution","command":"/bin/bash -lc 'echo {words}; ls'","aggregated_output":"{output}",{status}}}}}"#,
        )
    };
    stream.line(&[&call("item.started", "", r#""exit_code":null,"status":"in_progress""#)]);
    stream.line(&[&call("item.completed", &output, r#""exit_code":0,"status":"completed""#)]);
}

const CLAUDE_SESSION: &str = "cf2bb5f2-179d-433d-90f3-b384904b367a";
const CLAUDE_MODEL: &str = "claude-opus-5-5";

fn claude(stream: &mut Stream, shape: Shape, size: Size) {
    claude_start(stream);
    match shape {
        Shape::Small => {
            while stream.bytes.len() < size.stream {
                claude_pieces(stream);
                claude_pieces(stream);
                claude_call_in_pieces(stream);
            }
            claude_pieces(stream);
        }
        Shape::Kilobyte => {
            while stream.bytes.len() < size.stream {
                let id = claude_text(stream, 600);
                claude_command(stream, &id, 280);
            }
            claude_text(stream, 600);
        }
        Shape::Huge => {
            claude_text(stream, size.line);
            // What a command printed is told twice in its line.
            let id = stream.number();
            claude_command(stream, &id, size.line / 2);
            claude_write(stream, size.line);
            claude_text(stream, 600);
        }
    }
    claude_end(stream);
}

/// What every record but the last ends with.
fn claude_stamp(stream: &mut Stream) -> String {
    let (uuid, time) = (stream.uuid(), stream.time());
    format!(
        r#""parent_tool_use_id":null,"session_id":"{CLAUDE_SESSION}","uuid":"{uuid}","timestamp":"{time}""#,
    )
}

fn claude_assistant(stream: &mut Stream, id: &str, content: &str) {
    let stamp = claude_stamp(stream);
    stream.line(&[
        r#"{"type":"assistant","message":{"id":"msg_fake_"#,
        id,
        r#"","type":"message","role":"assistant","model":"claude-opus-5-5","content":["#,
        content,
        r#"],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":100,"#,
        r#""cache_creation_input_tokens":10,"cache_read_input_tokens":40,"output_tokens":1,"#,
        r#""service_tier":"standard"},"context_management":null},"#,
        &stamp,
        r#","request_id":"req_fake_"#,
        id,
        r#""}"#,
    ]);
}

fn claude_text(stream: &mut Stream, length: usize) -> String {
    let (id, text) = (stream.number(), stream.text(length));
    claude_assistant(stream, &id, &format!(r#"{{"type":"text","text":"{text}"}}"#));
    id
}

fn claude_command(stream: &mut Stream, id: &str, length: usize) {
    let (call, words) = (stream.number(), stream.plain_words(length.min(600) / 6));
    let input = format!(
        r#"{{"type":"tool_use","id":"toolu_bash_{call}","name":"Bash","input":{{"command":"echo {words}; ls","description":"run"}}}}"#,
    );
    claude_assistant(stream, id, &input);
    claude_answer(stream, &call, length);
}

fn claude_write(stream: &mut Stream, length: usize) {
    let (id, call, text) = (stream.number(), stream.number(), stream.text(length));
    let input = format!(
        r#"{{"type":"tool_use","id":"toolu_bash_{call}","name":"Write","input":{{"file_path":"/srv/cap-a/new.txt","content":"{text}"}}}}"#,
    );
    claude_assistant(stream, &id, &input);
    claude_answer(stream, &call, 40);
}

fn claude_answer(stream: &mut Stream, call: &str, length: usize) {
    let (output, stamp) = (stream.text(length), claude_stamp(stream));
    stream.line(&[
        r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_bash_"#,
        call,
        r#"","type":"tool_result","content":""#,
        &output,
        r#"","is_error":false}]},"#,
        &stamp,
        r#","tool_use_result":{"stdout":""#,
        &output,
        r#"","stderr":"","interrupted":false,"isImage":false,"noOutputExpected":false},"#,
        r#""tool_result_meta":[{"id":"toolu_bash_"#,
        call,
        r#"","permission_decision":{"decision":"accept","source":"config","reason_type":"mode"}}]}"#,
    ]);
}

/// One `stream_event`.
fn claude_event(stream: &mut Stream, id: &str, event: &str) {
    let uuid = stream.uuid();
    stream.line(&[
        r#"{"type":"stream_event","event":"#,
        event,
        r#","session_id":"cf2bb5f2-179d-433d-90f3-b384904b367a","parent_tool_use_id":null,"uuid":""#,
        &uuid,
        r#"","api_message_id":"msg_fake_"#,
        id,
        r#""}"#,
    ]);
}

const CLAUDE_USAGE: &str = r#"{"input_tokens":100,"cache_creation_input_tokens":10,"cache_read_input_tokens":40,"output_tokens":1,"service_tier":"standard"}"#;

fn claude_message_start(stream: &mut Stream, id: &str) {
    let uuid = stream.uuid();
    stream.line(&[
        r#"{"type":"system","subtype":"status","status":"requesting","session_id":"#,
        r#""cf2bb5f2-179d-433d-90f3-b384904b367a","uuid":""#,
        &uuid,
        r#""}"#,
    ]);
    let start = format!(
        r#"{{"type":"message_start","message":{{"id":"msg_fake_{id}","type":"message","role":"assistant","model":"{CLAUDE_MODEL}","content":[],"stop_reason":null,"stop_sequence":null,"usage":{CLAUDE_USAGE}}}}}"#,
    );
    claude_event(stream, id, &start);
}

fn claude_message_end(stream: &mut Stream, id: &str, reason: &str) {
    claude_event(stream, id, r#"{"type":"content_block_stop","index":0}"#);
    let delta = format!(
        r#"{{"type":"message_delta","delta":{{"stop_reason":"{reason}","stop_sequence":null}},"usage":{CLAUDE_USAGE}}}"#,
    );
    claude_event(stream, id, &delta);
    claude_event(stream, id, r#"{"type":"message_stop"}"#);
}

fn claude_pieces(stream: &mut Stream) {
    let id = stream.number();
    claude_message_start(stream, &id);
    let start =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    claude_event(stream, &id, start);
    let mut whole = String::new();
    for _ in 0..PIECES {
        let length = 8 + stream.below(24);
        let piece = stream.text(length);
        let delta = format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{piece}"}}}}"#,
        );
        claude_event(stream, &id, &delta);
        whole.push_str(&piece);
    }
    claude_assistant(stream, &id, &format!(r#"{{"type":"text","text":"{whole}"}}"#));
    claude_message_end(stream, &id, "end_turn");
}

fn claude_call_in_pieces(stream: &mut Stream) {
    let (id, call, words) = (stream.number(), stream.number(), stream.plain_words(6));
    claude_message_start(stream, &id);
    let start = format!(
        r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"tool_use","id":"toolu_bash_{call}","name":"Bash","input":{{}}}}}}"#,
    );
    claude_event(stream, &id, &start);
    for piece in [r#"{\"command\": \"echo "#, &words, r#"; ls\","#, r#" \"description\": \"run\"}"#]
    {
        let delta = format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":"{piece}"}}}}"#,
        );
        claude_event(stream, &id, &delta);
    }
    let input = format!(
        r#"{{"type":"tool_use","id":"toolu_bash_{call}","name":"Bash","input":{{"command":"echo {words}; ls","description":"run"}}}}"#,
    );
    claude_assistant(stream, &id, &input);
    claude_message_end(stream, &id, "tool_use");
    claude_answer(stream, &call, 40);
}

fn claude_start(stream: &mut Stream) {
    stream.line(&[
        r#"{"type":"system","subtype":"init","cwd":"/srv/cap-a/wsc/tool_single","session_id":"#,
        r#""cf2bb5f2-179d-433d-90f3-b384904b367a","tools":["Task","Bash","Edit","NotebookEdit","#,
        r#""Read","Skill","TaskStop","ToolSearch","WebFetch","WebSearch","Write"],"#,
        r#""mcp_servers":[],"model":"claude-opus-5-5","permissionMode":"bypassPermissions","#,
        r#""slash_commands":["verify","debug","code-review"],"apiKeySource":"ANTHROPIC_API_KEY","#,
        r#""claude_code_version":"2.1.325","output_style":"default","agents":["claude","Explore"],"#,
        r#""skills":["verify","debug"],"plugins":[],"uuid":"7f7ca190-0aa5-46b0-b37b-4a6776853eb4"}"#,
    ]);
}

fn claude_end(stream: &mut Stream) {
    let uuid = stream.uuid();
    stream.line(&[
        r#"{"duration_api_ms":76,"stop_reason":"end_turn","session_id":"#,
        r#""cf2bb5f2-179d-433d-90f3-b384904b367a","total_cost_usd":0.001716,"usage":{"#,
        r#""input_tokens":200,"cache_creation_input_tokens":20,"cache_read_input_tokens":80,"#,
        r#""output_tokens":40,"output_tokens_details":{"thinking_tokens":0},"#,
        r#""service_tier":"standard"},"modelUsage":{"claude-opus-5-5":{"inputTokens":200,"#,
        r#""outputTokens":40,"costUSD":0.001716}},"permission_denials":[],"#,
        r#""terminal_reason":"completed","is_error":false,"num_turns":2,"subtype":"success","#,
        r#""api_error_status":null,"result":"Done.","type":"result","duration_ms":300,"uuid":""#,
        &uuid,
        r#""}"#,
    ]);
}

fn gemini(stream: &mut Stream, shape: Shape, size: Size) {
    let time = stream.time();
    stream.line(&[
        r#"{"type":"init","timestamp":""#,
        &time,
        r#"","session_id":"dd03af0d-8be8-4a38-b52f-4cf5f5beeafa","model":"gemini-2.5-pro"}"#,
    ]);
    let (time, prompt) = (stream.time(), stream.text(60));
    stream.line(&[
        r#"{"type":"message","timestamp":""#,
        &time,
        r#"","role":"user","content":""#,
        &prompt,
        r#""}"#,
    ]);
    match shape {
        Shape::Small => {
            while stream.bytes.len() < size.stream {
                for _ in 0..PIECES {
                    let length = 30 + stream.below(80);
                    gemini_piece(stream, length);
                }
                gemini_command(stream, 40);
            }
        }
        Shape::Kilobyte => {
            while stream.bytes.len() < size.stream {
                gemini_piece(stream, 1_000);
                gemini_write(stream, 900, 900);
            }
        }
        Shape::Huge => {
            gemini_piece(stream, size.line);
            gemini_write(stream, size.line, 40);
            gemini_command(stream, size.line);
            gemini_piece(stream, 100);
        }
    }
    let time = stream.time();
    stream.line(&[
        r#"{"type":"result","timestamp":""#,
        &time,
        r#"","status":"success","stats":{"total_tokens":2040,"input_tokens":2000,"#,
        r#""output_tokens":40,"cached":0,"input":2000,"duration_ms":224,"tool_calls":1,"models":{"#,
        r#""gemini-2.5-pro":{"total_tokens":2040,"input_tokens":2000,"output_tokens":40,"#,
        r#""cached":0,"input":2000}}}}"#,
    ]);
}

fn gemini_piece(stream: &mut Stream, length: usize) {
    let (time, text) = (stream.time(), stream.text(length));
    stream.line(&[
        r#"{"type":"message","timestamp":""#,
        &time,
        r#"","role":"assistant","content":""#,
        &text,
        r#"","delta":true}"#,
    ]);
}

fn gemini_command(stream: &mut Stream, length: usize) {
    let (call, words) = (stream.number(), stream.plain_words(5));
    let id = format!("run_shell_command__run_shell_command_{call}_0");
    let input = format!(r#"{{"command":"echo {words}; ls","description":"run echo"}}"#);
    gemini_call(stream, "run_shell_command", &id, &input, length);
}

fn gemini_write(stream: &mut Stream, length: usize, output: usize) {
    let (call, text) = (stream.number(), stream.text(length));
    let id = format!("write_file__write_file_{call}_0");
    let input = format!(r#"{{"file_path":"/srv/cap-b/proj/new.txt","content":"{text}"}}"#);
    gemini_call(stream, "write_file", &id, &input, output);
}

fn gemini_call(stream: &mut Stream, name: &str, id: &str, input: &str, output: usize) {
    let time = stream.time();
    stream.line(&[
        r#"{"type":"tool_use","timestamp":""#,
        &time,
        r#"","tool_name":""#,
        name,
        r#"","tool_id":""#,
        id,
        r#"","parameters":"#,
        input,
        "}",
    ]);
    let (time, output) = (stream.time(), stream.text(output));
    stream.line(&[
        r#"{"type":"tool_result","timestamp":""#,
        &time,
        r#"","tool_id":""#,
        id,
        r#"","status":"success","output":""#,
        &output,
        r#""}"#,
    ]);
}

const WORDS: [&str; 24] = [
    "the",
    "stream",
    "reads",
    "one",
    "line",
    "of",
    "text",
    "and",
    "writes",
    "it",
    "again",
    "when",
    "a",
    "tool",
    "call",
    "ends",
    "with",
    "status",
    "open",
    "file",
    "src/main.rs",
    "fn",
    "value",
    "done",
];

/// What stands between words now and then, as it is inside a string literal.
const MARKS: [&str; 10] =
    [", ", ". ", "\\n", "\\n\\n", " \\\"key\\\": ", "\\t", " é ", " → ", " 日本 ", " 🧪 "];

/// Lines so far, and what makes the next one differ.
#[derive(Default)]
struct Stream {
    bytes: Vec<u8>,
    numbers: u64,
    times: u64,
    state: u64,
}

impl Stream {
    fn line(&mut self, parts: &[&str]) {
        for part in parts {
            self.bytes.extend_from_slice(part.as_bytes());
        }
        self.bytes.push(b'\n');
    }

    /// Knuth's linear congruential generator: even spread is all that is asked of it.
    fn below(&mut self, limit: usize) -> usize {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.state >> 33) as usize % limit
    }

    /// About so much text, as it is inside a string literal.
    fn text(&mut self, length: usize) -> String {
        let mut text = String::with_capacity(length + 16);
        while text.len() < length {
            text.push_str(WORDS.get(self.below(WORDS.len())).unwrap_or(&""));
            let mark = MARKS.get(self.below(MARKS.len() * 8)).unwrap_or(&" ");
            text.push_str(mark);
        }
        text
    }

    fn plain_words(&mut self, count: usize) -> String {
        let words: Vec<_> =
            (0..count).filter_map(|_| WORDS.get(self.below(WORDS.len())).copied()).collect();
        words.join(" ")
    }

    /// The next number, for ids.
    fn number(&mut self) -> String {
        self.numbers += 1;
        format!("{:06}", self.numbers)
    }

    fn uuid(&mut self) -> String {
        let mut part = |width: usize| format!("{:0width$x}", self.below(1 << 16));
        [part(8), part(4), part(4), part(4), part(12)].join("-")
    }

    fn time(&mut self) -> String {
        self.times += 7;
        let (seconds, milliseconds) = (self.times / 1000, self.times % 1000);
        let (minutes, seconds) = (seconds / 60, seconds % 60);
        let (hours, minutes) = (minutes / 60 % 24, minutes % 60);
        format!("2026-11-15T{hours:02}:{minutes:02}:{seconds:02}.{milliseconds:03}Z")
    }
}
