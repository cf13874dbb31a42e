//! Keeps the key out of what is shown.

/// The shortest part of a key that is recognised in a message.
const PART: usize = 6;

/// Masks the words of a message that quote a part of the key, as providers do when they reject it.
pub(crate) fn mask(message: &str, key: &str) -> String {
    let key = key.trim();
    let (Some(start), Some(end)) = (key.get(..PART), key.get(key.len().saturating_sub(4)..)) else {
        return message.to_owned();
    };
    let quotes = |word: &str| {
        let bare = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let elided = word.contains('*') || word.contains("...") || word.contains('…');
        bare.contains(start) || (elided && bare.ends_with(end))
    };
    let words = message.split_inclusive(char::is_whitespace);
    let masked = words.map(|word| {
        if !quotes(word) {
            return word.to_owned();
        }
        let blank: String = word.chars().filter(|letter| letter.is_whitespace()).collect();
        format!("[key]{blank}")
    });
    masked.collect()
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn a_quoted_key_is_masked() {
        let key = "sk-proj-abcdefghijklmnopqrstuvwxyz1234";
        let message =
            "Incorrect API key provided: sk-proj-********************************1234. You can";
        assert_eq!(mask(message, key), "Incorrect API key provided: [key] You can");
        assert_eq!(mask("The key sk-proj-abc... is wrong", key), "The key [key] is wrong");
        assert_eq!(mask("****z1234 is wrong", key), "[key] is wrong");
        assert_eq!(mask("in 1234 s", key), "in 1234 s");
        assert_eq!(mask("no key", ""), "no key");
    }
}
