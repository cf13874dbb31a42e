//! A minimal HTTP client, so that a test can distinguish a cut from an end.

use std::io::{Read, Write};
use std::net::TcpStream;

use fake_model::FakeModel;
use serde_json::Value;

/// A received response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: String,
    pub body: String,
    /// Whether the response ended normally.
    pub complete: bool,
}

impl Response {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The names and the data of the complete events.
    pub fn events(&self) -> Vec<(String, String)> {
        let mut events: Vec<&str> = self.body.split("\n\n").collect();
        events.pop();
        let field = |event: &str, name: &str| {
            let line = event.lines().find_map(|line| line.strip_prefix(name));
            line.unwrap_or_default().to_owned()
        };
        let event = |event: &&str| (field(event, "event: "), field(event, "data: "));
        events.iter().map(event).collect()
    }
}

/// Posts with the right key, on a connection of its own.
pub fn post(model: &FakeModel, path: &str, body: &Value) -> Response {
    Client::new(model).post(path, body)
}

/// A connection.
pub struct Client {
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    pub fn new(model: &FakeModel) -> Self {
        let address = model.address();
        let stream = TcpStream::connect(address.strip_prefix("http://").unwrap()).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub fn post(&mut self, path: &str, body: &Value) -> Response {
        self.send(path, body);
        self.read()
    }

    pub fn send(&mut self, path: &str, body: &Value) {
        let body = body.to_string();
        let head = "authorization: Bearer dummy\r\nanthropic-version: 2026-10-21\r\n";
        let length = body.len();
        self.write(&format!("POST {path} HTTP/1.1\r\n{head}content-length: {length}\r\n\r\n"));
        self.write(&body);
    }

    pub fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).unwrap();
    }

    /// Reads until this text has been received.
    pub fn read_until(&mut self, wanted: &str) {
        while !String::from_utf8_lossy(&self.buffer).contains(wanted) {
            assert!(self.fill(), "{wanted:?} did not come");
        }
    }

    /// Reads a head; it is empty if the connection ends before it.
    pub fn read_head(&mut self) -> String {
        loop {
            if let Some(end) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                let head: Vec<u8> = self.buffer.drain(..end + 4).collect();
                return String::from_utf8(head).unwrap();
            }
            if !self.fill() {
                return String::new();
            }
        }
    }

    pub fn read(&mut self) -> Response {
        let headers = self.read_head();
        if headers.is_empty() {
            let body = String::from_utf8_lossy(&self.buffer).into_owned();
            return Response { status: 0, headers, body, complete: false };
        }
        let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
        let length = headers.lines().find_map(|line| line.strip_prefix("content-length: "));
        let (body, complete) = match length {
            Some(length) => self.read_length(length.parse().unwrap()),
            None => self.read_chunks(),
        };
        Response { status, headers, body: String::from_utf8(body).unwrap(), complete }
    }

    fn read_length(&mut self, length: usize) -> (Vec<u8>, bool) {
        while self.buffer.len() < length && self.fill() {}
        let complete = self.buffer.len() >= length;
        let length = length.min(self.buffer.len());
        (self.buffer.drain(..length).collect(), complete)
    }

    fn read_chunks(&mut self) -> (Vec<u8>, bool) {
        let mut body = Vec::new();
        loop {
            let Some(end) = self.buffer.windows(2).position(|two| two == b"\r\n") else {
                if self.fill() {
                    continue;
                }
                return (body, false);
            };
            let size = std::str::from_utf8(&self.buffer[..end]).unwrap();
            let size = usize::from_str_radix(size, 16).unwrap();
            while self.buffer.len() < end + size + 4 {
                if !self.fill() {
                    return (body, false);
                }
            }
            body.extend(&self.buffer[end + 2..end + 2 + size]);
            self.buffer.drain(..end + size + 4);
            if size == 0 {
                return (body, true);
            }
        }
    }

    fn fill(&mut self) -> bool {
        let mut chunk = [0; 4096];
        let count = self.stream.read(&mut chunk).unwrap_or(0);
        self.buffer.extend(&chunk[..count]);
        count > 0
    }
}
