//! Standard output and standard error of a program in one pipe, in the order in which it printed.
//!
//! For programs that are not agents: commands write to a pipe everywhere else, too, and may open
//! `/dev/stderr` again. A thread reads the pipe, a bounded amount ahead of who takes the output.

use std::io::{self, PipeReader, PipeWriter, Read};

use tokio::sync::mpsc;

/// The maximum size of one piece of output.
const PIECE: usize = 32 << 10;

/// How many pieces are read ahead.
const AHEAD: usize = 4;

/// The output of a program that was started with [`Command::start_joined`].
///
/// When it is dropped, the program can print no more.
///
/// [`Command::start_joined`]: super::Command::start_joined
#[derive(Debug)]
pub struct Joined {
    pieces: mpsc::Receiver<Vec<u8>>,
}

impl Joined {
    /// Opens the pipe. Returns the end that the program writes to.
    pub(super) fn open() -> io::Result<(Self, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        let (sender, pieces) = mpsc::channel(AHEAD);
        let name = "output".to_owned();
        std::thread::Builder::new().name(name).spawn(move || read(reader, &sender))?;
        Ok((Self { pieces }, writer))
    }

    /// The next piece of output; `None` once no process has the pipe open.
    pub async fn next(&mut self) -> Option<Vec<u8>> {
        self.pieces.recv().await
    }
}

fn read(mut pipe: PipeReader, pieces: &mpsc::Sender<Vec<u8>>) {
    let mut piece = vec![0; PIECE];
    loop {
        match pipe.read(&mut piece) {
            Ok(length @ 1..) => {
                let read = piece.get(..length).unwrap_or_default().to_vec();
                if pieces.blocking_send(read).is_err() {
                    return;
                }
            }
            Err(problem) if problem.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return,
        }
    }
}
