//! Makes paths absolute: the protocol requires it, and agents often report relative ones.

use crate::json::Text;

/// The working folder of a session, if it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct WorkingFolder(Option<String>);

impl WorkingFolder {
    /// Sets the folder; a relative one is useless and ignored.
    pub(super) fn set(&mut self, folder: Option<&Text<'_>>) {
        let folder = folder.map(|folder| folder.to_plain());
        if let Some(folder) = folder.filter(|folder| is_absolute(folder)) {
            self.0 = Some(folder.into_owned());
        }
    }

    /// The absolute path; `None` if the folder that it is relative to is unknown.
    pub(super) fn absolute<'t>(&self, path: &'t Text<'_>) -> Option<Text<'t>> {
        if is_absolute(path.body()) {
            return Some(path.borrowed());
        }
        let path = path.to_plain();
        let is_outside = path.is_empty() || path.starts_with('~') || path.contains("://");
        let folder = self.0.as_deref().filter(|_| !is_outside)?;
        let mut rest = &*path;
        while let Some(shorter) = rest.strip_prefix("./") {
            rest = shorter.trim_start_matches('/');
        }
        if rest.is_empty() || rest == "." {
            return Some(Text::from(folder.to_owned()));
        }
        Some(Text::from(format!("{}/{rest}", folder.trim_end_matches(['/', '\\']))))
    }

    /// The URI of a file; a relative path stays as it is if the folder is unknown.
    pub(super) fn uri(&self, path: &Text<'_>) -> String {
        let Some(absolute) = self.absolute(path) else { return path.to_string() };
        let absolute = absolute.to_plain();
        let mut uri = String::from("file://");
        if !absolute.starts_with('/') {
            uri.push('/');
        }
        for byte in absolute.bytes() {
            match byte {
                b'\\' => uri.push('/'),
                b'/' | b':' | b'@' | b'-' | b'.' | b'_' | b'~' | b'+' | b',' | b'=' => {
                    uri.push(char::from(byte));
                }
                _ if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
                _ => uri.push_str(&format!("%{byte:02X}")),
            }
        }
        uri
    }
}

/// Whether a path begins at a root of Unix or of Windows. It may be the escaped body of a JSON
/// string.
fn is_absolute(path: &str) -> bool {
    match path.as_bytes() {
        [b'/', ..] | [b'\\', b'\\', ..] => true,
        [drive, b':', b'/' | b'\\', ..] => drive.is_ascii_alphabetic(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absolute(folder: &str, path: &str) -> Option<String> {
        let mut working = WorkingFolder::default();
        working.set(Some(&Text::plain(folder)));
        working.absolute(&Text::plain(path)).map(|path| path.to_string())
    }

    #[test]
    fn paths_are_joined_to_the_folder() {
        assert_eq!(absolute("/w", "/a").as_deref(), Some("/a"));
        assert_eq!(absolute("/w/", "././a/b").as_deref(), Some("/w/a/b"));
        assert_eq!(absolute("/w", ".").as_deref(), Some("/w"));
        assert_eq!(absolute("/", "a").as_deref(), Some("/a"));
        assert_eq!(absolute(r"C:\w", "a").as_deref(), Some(r"C:\w/a"));
        assert_eq!(absolute("w", "a"), None);
        assert_eq!(absolute("/w", "~/a"), None);
        assert_eq!(absolute("/w", ""), None);
    }

    #[test]
    fn uris_are_escaped() {
        let uri = |path: &str| WorkingFolder::default().uri(&Text::plain(path));
        assert_eq!(uri("/a b#1%/é.md"), "file:///a%20b%231%25/%C3%A9.md");
        assert_eq!(uri(r"C:\a\b"), "file:///C:/a/b");
        assert_eq!(uri("./a b"), "./a b");
        assert_eq!(uri("https://example.com/a?b"), "https://example.com/a?b");
    }
}
