//! Maps the output of Codex to the three records that a chat of the Giselle API reads.

use super::lines;
use crate::dialect::giselle::GiselleEncoder;
use crate::dialect::{EncodeOptions, Encoder, Output, codex};
use crate::event::{Data, Event, Outcome, TurnEnded};
use crate::json::Text;
use crate::reader::{ReadOptions, Reader};
use crate::writer::Writer;
use crate::{Error, Exit, Translator};

/// Maps the stdout of `codex exec --json` to `init`, `message` and `stderr` records.
///
/// Everything else is left out, including lines that cannot be read, because the consumers of this
/// mapper know no other records. To keep everything, translate from `codex` to `giselle`.
///
/// ```
/// use interlingua::mapper::CodexStdoutMapper;
///
/// let mut mapper = CodexStdoutMapper::new();
/// assert!(mapper.push(br#"{"type":"message.output_text.delta","del"#).is_empty());
/// let lines = mapper.push(b"ta\":\"Hi\"}\n");
/// assert_eq!(
///     lines,
///     ["{\"type\":\"message\",\"role\":\"assistant\",\"content\":\"Hi\",\"delta\":true}\n"]
/// );
/// assert!(mapper.flush().is_empty());
/// ```
#[derive(Debug)]
pub struct CodexStdoutMapper {
    translator: Result<Translator<ChatRecords>, Error>,
}

impl CodexStdoutMapper {
    /// A mapper at the beginning of a stream.
    pub fn new() -> Self {
        let options = EncodeOptions::default();
        let writer = Writer::with_encoder(ChatRecords::new(&options), &options);
        let reader = Reader::new((&codex::DIALECT).into(), ReadOptions::default());
        Self { translator: reader.map(|reader| Translator::with_writer(reader, writer)) }
    }

    /// Takes a chunk of stdout, and returns the lines that are now complete.
    pub fn push(&mut self, chunk: &[u8]) -> Vec<String> {
        match &mut self.translator {
            Ok(translator) => lines(translator.push(chunk, None)),
            Err(_) => Vec::new(),
        }
    }

    /// Ends the stream, returns what was held back, and resets the mapper.
    pub fn flush(&mut self) -> Vec<String> {
        match std::mem::take(self).translator {
            Ok(translator) => lines(&translator.finish(&Exit::default(), None).bytes),
            Err(_) => Vec::new(),
        }
    }

    /// Resets the mapper to the beginning of a stream.
    pub fn reset(&mut self) {
        *self = Self::new();
    }
}

impl Default for CodexStdoutMapper {
    fn default() -> Self {
        Self::new()
    }
}

/// The encoder for the `giselle` records that a chat reads.
#[derive(Debug, Clone)]
struct ChatRecords {
    giselle: GiselleEncoder,
    /// The errors that were written in this turn, which its end does not repeat.
    errors: Vec<Text<'static>>,
}

impl ChatRecords {
    fn new(options: &EncodeOptions) -> Self {
        Self { giselle: GiselleEncoder::new(options), errors: Vec::new() }
    }

    /// Writes the cause of a failed turn, unless it was written before.
    fn failed(&mut self, ended: &TurnEnded<'_>, out: &mut Output) {
        let cause = ended.cause.as_ref().filter(|_| ended.outcome != Outcome::Completed);
        if let Some(cause) = cause.filter(|cause| !self.errors.contains(cause)) {
            let mut record = out.record("stderr");
            record.text("content", cause);
            record.end();
        }
        self.errors.clear();
    }
}

impl Encoder for ChatRecords {
    fn encode(&mut self, event: &Event<'_>, out: &mut Output) {
        match &event.data {
            // Every session has an `init`, even one without an id.
            Data::SessionStarted(started) if started.id.is_none() && event.synthetic.is_none() => {
                let mut record = out.record("init");
                record.text_if("modelId", started.model.as_ref());
                record.end();
            }
            Data::SessionStarted(_)
            | Data::SessionUpdated(_)
            | Data::BlockDelta(_)
            | Data::Block(_) => self.giselle.encode(event, out),
            Data::Error(error) => {
                self.errors.push(error.message.clone().into_owned());
                self.giselle.encode(event, out);
            }
            Data::Retry(retry) => {
                self.errors.extend(retry.message.clone().map(Text::into_owned));
                self.giselle.encode(event, out);
            }
            Data::TurnEnded(ended) if event.synthetic.is_none() => self.failed(ended, out),
            // For an error without a message, the whole record is the message.
            Data::Native(native) if native.name == "error" => {
                let whole = native.raw.as_ref().map(|raw| raw.get().to_owned());
                let mut record = out.record("stderr");
                record.string("content", &whole.unwrap_or_default());
                record.end();
            }
            _ => {}
        }
    }
}
