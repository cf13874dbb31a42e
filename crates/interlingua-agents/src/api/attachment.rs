//! Files that are sent with a prompt: images and PDFs as such, everything else as text.

use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::history::Part;
use crate::session::Refused;
use crate::tool::media_type;

/// The largest file that can be sent, in bytes.
const LARGEST: u64 = 20 << 20;

/// Reads a file as a part of a prompt. The error is for the user.
pub(crate) fn read(path: &Path) -> Result<Part, Refused> {
    let shown = path.display();
    let refused = |problem: String| Refused::NotSupported(format!("{shown}: {problem}"));
    let found = path.metadata().map_err(|problem| refused(problem.to_string()))?;
    if !found.is_file() {
        return Err(refused("this is not a file".to_owned()));
    }
    if found.len() > LARGEST {
        let limit = LARGEST >> 20;
        return Err(refused(format!(
            "a file that is sent may have {limit} MiB; name its path instead"
        )));
    }
    let bytes = std::fs::read(path).map_err(|problem| refused(problem.to_string()))?;
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let name = name.unwrap_or_default();
    match media_type(&bytes) {
        Some(kind) if kind.starts_with("image/") => {
            Ok(Part::Image { media_type: kind.to_owned(), data: STANDARD.encode(&bytes) })
        }
        Some(kind) => {
            Ok(Part::Document { media_type: kind.to_owned(), data: STANDARD.encode(&bytes), name })
        }
        None => match String::from_utf8(bytes) {
            Ok(text) => Ok(Part::Text(format!("The file {name}:\n\n{text}"))),
            Err(_) => Err(refused("only text, images and PDFs can be sent".to_owned())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_sent_as_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, bytes: &[u8]| {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            read(&path)
        };
        let image = file("a.dat", b"\x89PNG\r\n\x1a\n....");
        assert!(matches!(image, Ok(Part::Image { media_type, .. }) if media_type == "image/png"));
        let document = file("b.pdf", b"%PDF-1.7 ...");
        assert!(matches!(document, Ok(Part::Document { name, .. }) if name == "b.pdf"));
        assert_eq!(file("c.txt", b"hi"), Ok(Part::Text("The file c.txt:\n\nhi".to_owned())));
        assert!(file("d.bin", b"\xff\xfe\x00").is_err());
        assert!(read(folder.path()).is_err() && read(Path::new("/no/such/file")).is_err());
    }
}
