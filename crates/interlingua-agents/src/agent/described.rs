//! What a file describes that is named in place of an agent: a program, or a service that runs agents elsewhere.

use std::path::Path;

use super::program::Program;
use crate::error::Error;
use crate::remote::{RemoteService, description};

/// What a file describes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Described {
    /// A program; the file has a `command`.
    Program(Box<Program>),
    /// A remote agent; the file has a `url`.
    Service(Box<RemoteService>),
}

impl Described {
    /// Reads a description.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bad =
            |problem: String| Error::InvalidFile { path: path.display().to_string(), problem };
        let text = std::fs::read_to_string(path).map_err(|error| bad(error.to_string()))?;
        // A line that is not TOML may be the header of a service, so it is not quoted.
        let table = toml::from_str::<toml::Table>(&text)
            .map_err(|error| bad(description::problem(&text, &error)))?;
        if table.contains_key("url") {
            let service = RemoteService::parse(&text).map_err(bad)?;
            return Ok(Self::Service(Box::new(service)));
        }
        Ok(Self::Program(Box::new(Program::parse(&text).map_err(bad)?)))
    }

    /// Whether an agent is named by the path of its description.
    pub fn is_path(name: &str) -> bool {
        Path::new(name).extension().is_some_and(|ending| ending == "toml")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_describes_a_program_or_a_service() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            let path = folder.path().join("a.toml");
            std::fs::write(&path, text).unwrap();
            Described::read(&path)
        };
        assert!(matches!(read("command = 'x'\nscreen = true"), Ok(Described::Program(_))));
        assert!(matches!(read("url = 'http://h'"), Ok(Described::Service(_))));
        let problem = read("url = 'http://h'\ncommand = 'x'").unwrap_err().to_string();
        assert!(problem.contains("a.toml") && problem.contains("command"), "{problem}");
        assert!(read("= 'x'").unwrap_err().to_string().contains("line 1"));
        let problem = read("url = 'http://h'\n[headers]\nx-key = secret").unwrap_err().to_string();
        assert!(problem.contains("line 3") && !problem.contains("secret"), "{problem}");
        assert!(Described::is_path("./x.toml") && !Described::is_path("codex"));
    }
}
