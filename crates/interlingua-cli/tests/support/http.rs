//! Requests to a server on loopback, and the parts of its responses.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// The token of every server that tests start.
pub(crate) const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A server that says nothing for so long has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// A complete response.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The body as text, for messages.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(&self.head, name)
    }
}

/// A response whose body is read as it arrives.
pub(crate) struct Response {
    pub(crate) status: u16,
    head: String,
    body: BufReader<TcpStream>,
}

/// Sends a request; returns once the head of the response has arrived.
pub(crate) fn send(
    address: &str,
    method: &str,
    path: &str,
    key: Option<&str>,
    body: Option<&Value>,
) -> Result<Response> {
    send_with(TOKEN, address, method, path, key, body)
}

/// Sends a request with another token.
pub(crate) fn send_with(
    token: &str,
    address: &str,
    method: &str,
    path: &str,
    key: Option<&str>,
    body: Option<&Value>,
) -> Result<Response> {
    let mut connection = TcpStream::connect(address)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    let body = body.map(Value::to_string).unwrap_or_default();
    let key = key.map(|key| format!("idempotency-key: {key}\r\n")).unwrap_or_default();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n{key}\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    connection.write_all(format!("{head}{body}").as_bytes())?;
    let mut body = BufReader::new(connection);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if body.read_line(&mut head)? == 0 {
            return Err(Error::from(ErrorKind::UnexpectedEof));
        }
    }
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| Error::from(ErrorKind::InvalidData))?;
    Ok(Response { status, head, body })
}

impl Response {
    /// The rest of the body.
    pub(crate) fn complete(mut self) -> Result<Answer> {
        let mut body = Vec::new();
        if self.is_chunked() {
            while let Some(chunk) = self.chunk()? {
                body.extend(chunk);
            }
        } else {
            let length = header(&self.head, "content-length").and_then(|it| it.parse().ok());
            body = vec![0; length.unwrap_or(0)];
            self.body.read_exact(&mut body)?;
        }
        Ok(Answer { status: self.status, head: self.head, body })
    }

    fn is_chunked(&self) -> bool {
        header(&self.head, "transfer-encoding") == Some("chunked")
    }

    /// The next complete chunk of the body; `None` at its end.
    pub(crate) fn chunk(&mut self) -> Result<Option<Vec<u8>>> {
        let mut line = String::new();
        self.body.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim_end(), 16)
            .map_err(|_| Error::from(ErrorKind::UnexpectedEof))?;
        let mut chunk = vec![0; size + 2];
        self.body.read_exact(&mut chunk)?;
        chunk.truncate(size);
        Ok((size > 0).then_some(chunk))
    }

    /// Another handle of the connection, with which it can be cut.
    pub(crate) fn connection(&self) -> Result<Cut> {
        Ok(Cut(self.body.get_ref().try_clone()?))
    }
}

/// Cuts a connection.
pub(crate) struct Cut(TcpStream);

impl Cut {
    pub(crate) fn now(&self) {
        // It may have ended already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines()
        .filter_map(|line| line.split_once(':'))
        .find_map(|(known, value)| known.eq_ignore_ascii_case(name).then_some(value.trim()))
}
