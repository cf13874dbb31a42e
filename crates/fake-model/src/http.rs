//! A minimal HTTP/1.1 implementation with what agents need: heads, bodies of known length or in
//! chunks, compressed bodies, keep-alive, and answers that can be cut anywhere.
//!
//! It knows nothing of models.

use std::io::{self, Read, Write};
use std::net::TcpStream;

const HEAD_LIMIT: usize = 256 * 1024;
const BODY_LIMIT: usize = 256 * 1024 * 1024;

/// The name of a header, in lower case, and its value.
pub(crate) type Header = (String, String);

/// A received request.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: Vec<Header>,
    /// The body, or the reason why it cannot be read, for the answer.
    pub(crate) body: Result<Vec<u8>, String>,
    pub(crate) keep_alive: bool,
}

impl Incoming {
    fn header(&self, wanted: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(name, _)| name == wanted);
        found.map(|(_, value)| value.as_str())
    }
}

/// One connection with an agent.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    /// The next request, or `None` if the agent is done.
    pub(crate) fn next(&mut self) -> io::Result<Option<Incoming>> {
        let Some(mut incoming) = self.read_head()? else { return Ok(None) };
        if incoming.header("expect").is_some_and(|value| value.eq_ignore_ascii_case("100-continue"))
        {
            self.stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let chunked = incoming
            .header("transfer-encoding")
            .is_some_and(|value| value.to_ascii_lowercase().contains("chunked"));
        let body = if chunked {
            self.read_chunks()?
        } else {
            let length = incoming.header("content-length").unwrap_or("0");
            let length = length.trim().parse().map_err(|_| invalid("content-length"))?;
            self.take(length)?
        };
        incoming.body = decoded(incoming.header("content-encoding").unwrap_or_default(), body);
        Ok(Some(incoming))
    }

    /// Sends a head for `body`, and the requested number of its bytes.
    pub(crate) fn respond(
        &mut self,
        status: u16,
        headers: &[Header],
        body: &str,
        bytes: usize,
    ) -> io::Result<()> {
        let length = [("content-length".to_owned(), body.len().to_string())];
        let mut answer = head(status, &[headers, &length].concat());
        answer.push_str(body.get(..bytes).unwrap_or(body));
        self.send(&answer)
    }

    /// Starts an answer that is sent in chunks.
    pub(crate) fn start_stream(&mut self, headers: &[Header]) -> io::Result<()> {
        let own = [
            ("content-type", "text/event-stream; charset=utf-8"),
            ("cache-control", "no-cache"),
            ("transfer-encoding", "chunked"),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
        self.send(&head(200, &[&own, headers].concat()))
    }

    /// Sends a chunk.
    pub(crate) fn send_chunk(&mut self, text: &str) -> io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.send(&format!("{:x}\r\n{text}\r\n", text.len()))
    }

    /// Ends an answer that was sent in chunks.
    pub(crate) fn end_stream(&mut self) -> io::Result<()> {
        self.send("0\r\n\r\n")
    }

    /// Sends bytes unchanged.
    pub(crate) fn send(&mut self, text: &str) -> io::Result<()> {
        self.stream.write_all(text.as_bytes())?;
        self.stream.flush()
    }

    /// Closes both directions at once.
    pub(crate) fn cut(&self) {
        // It fails only if the agent has already closed the connection.
        let _ = self.stream.shutdown(std::net::Shutdown::Both);
    }

    /// Whether the agent has closed the connection.
    pub(crate) fn is_closed(&self) -> bool {
        if self.stream.set_nonblocking(true).is_err() {
            return true;
        }
        let peeked = self.stream.peek(&mut [0]);
        let blocking = self.stream.set_nonblocking(false);
        let would_block = |error: &io::Error| error.kind() == io::ErrorKind::WouldBlock;
        blocking.is_err()
            || match peeked {
                Ok(count) => count == 0,
                Err(error) => !would_block(&error),
            }
    }

    fn read_head(&mut self) -> io::Result<Option<Incoming>> {
        loop {
            if let Some((incoming, length)) = parse_head(&self.buffer)? {
                self.buffer.drain(..length);
                return Ok(Some(incoming));
            }
            if self.buffer.len() > HEAD_LIMIT {
                return Err(invalid("head"));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    fn read_chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let (start, size) = self.read_chunk_size()?;
            self.buffer.drain(..start);
            if size == 0 {
                self.skip_trailers()?;
                return Ok(body);
            }
            body.extend(self.take(size)?);
            self.take(2)?;
            if body.len() > BODY_LIMIT {
                return Err(invalid("length of the chunks"));
            }
        }
    }

    fn read_chunk_size(&mut self) -> io::Result<(usize, usize)> {
        loop {
            match httparse::parse_chunk_size(&self.buffer) {
                Ok(httparse::Status::Complete((start, size))) => {
                    return Ok((start, usize::try_from(size).map_err(|_| invalid("chunk"))?));
                }
                Ok(httparse::Status::Partial) => self.fill_or_fail()?,
                Err(_) => return Err(invalid("chunk")),
            }
        }
    }

    /// Skips the trailer after the last chunk: lines up to an empty one.
    fn skip_trailers(&mut self) -> io::Result<()> {
        loop {
            let end = self.buffer.windows(2).position(|pair| pair == b"\r\n");
            match end {
                Some(end) => {
                    self.buffer.drain(..end + 2);
                    if end == 0 {
                        return Ok(());
                    }
                }
                None => self.fill_or_fail()?,
            }
        }
    }

    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > BODY_LIMIT {
            return Err(invalid("length of the body"));
        }
        while self.buffer.len() < length {
            self.fill_or_fail()?;
        }
        let rest = self.buffer.split_off(length);
        Ok(std::mem::replace(&mut self.buffer, rest))
    }

    fn fill_or_fail(&mut self) -> io::Result<()> {
        if self.fill()? { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    /// Reads more; false at the end.
    fn fill(&mut self) -> io::Result<bool> {
        let mut chunk = vec![0; 64 * 1024];
        let count = self.stream.read(&mut chunk)?;
        self.buffer.extend(chunk.iter().take(count));
        Ok(count > 0)
    }
}

fn parse_head(buffer: &[u8]) -> io::Result<Option<(Incoming, usize)>> {
    let mut space = [httparse::EMPTY_HEADER; 128];
    let mut request = httparse::Request::new(&mut space);
    let length = match request.parse(buffer) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
    };
    let headers = request.headers.iter().map(|header| {
        let value = String::from_utf8_lossy(header.value).into_owned();
        (header.name.to_ascii_lowercase(), value)
    });
    let mut incoming = Incoming {
        method: request.method.unwrap_or_default().to_owned(),
        path: request.path.unwrap_or_default().to_owned(),
        headers: headers.collect(),
        body: Ok(Vec::new()),
        keep_alive: true,
    };
    let connection = incoming.header("connection").unwrap_or_default().to_ascii_lowercase();
    incoming.keep_alive = match request.version {
        Some(0) => connection.contains("keep-alive"),
        _ => !connection.contains("close"),
    };
    Ok(Some((incoming, length)))
}

/// Decompresses a body, or returns the reason why it cannot.
fn decoded(encoding: &str, body: Vec<u8>) -> Result<Vec<u8>, String> {
    let encoding = encoding.trim().to_ascii_lowercase();
    let mut plain = Vec::new();
    let read = match encoding.as_str() {
        "" | "identity" => return Ok(body),
        "gzip" | "x-gzip" => flate2::read::MultiGzDecoder::new(&*body).read_to_end(&mut plain),
        "deflate" => flate2::read::ZlibDecoder::new(&*body).read_to_end(&mut plain),
        other => {
            return Err(format!(
                "the content-encoding {other:?} is not supported: \
                 send gzip, deflate or no compression at all"
            ));
        }
    };
    match read {
        Ok(_) => Ok(plain),
        Err(error) => Err(format!("the body is not valid {encoding}: {error}")),
    }
}

fn head(status: u16, headers: &[Header]) -> String {
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    head
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        503 => "Service Unavailable",
        529 => "Overloaded",
        _ => "Status",
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the {what} of the request is not valid"))
}
