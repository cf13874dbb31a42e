//! Suggests known names for one that is not known.

/// The known names that are similar to `name`, quoted, the most similar first. A name may have
/// several spellings; the first one is suggested.
pub(crate) fn similar<'k>(
    name: &str,
    known: impl IntoIterator<Item = (&'k str, &'k [&'k str])>,
) -> Vec<String> {
    let name = name.to_lowercase();
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|(known, aliases)| {
            let names = std::iter::once(&known).chain(aliases);
            let nearest = names.map(|known| distance(&name, known)).min()?;
            Some((nearest, known))
        })
        .filter(|(distance, _)| *distance <= 2)
        .collect();
    near.sort_unstable();
    near.into_iter().map(|(_, name)| format!("`{name}`")).collect()
}

/// The edit distance of two names; a substring counts as distance 1.
fn distance(typed: &str, known: &str) -> usize {
    if typed.len() > 2 && known.contains(typed) {
        return 1;
    }
    let known: Vec<char> = known.chars().collect();
    let mut row: Vec<usize> = (0..=known.len()).collect();
    for (index, letter) in typed.chars().enumerate() {
        let mut above_left = index;
        let mut left = index + 1;
        for (place, other) in row.iter_mut().skip(1).zip(&known) {
            let changed = above_left + usize::from(letter != *other);
            above_left = *place;
            left = changed.min(left + 1).min(*place + 1);
            *place = left;
        }
        if let Some(first) = row.first_mut() {
            *first = index + 1;
        }
    }
    row.last().copied().unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_similar_if_one_or_two_letters_differ() {
        assert_eq!(distance("cluade", "claude"), 2);
        assert_eq!(distance("codx", "codex"), 1);
        assert_eq!(distance("", "abc"), 3);
        let known: [(&str, &[&str]); 2] = [("codex", &["codex-exec"]), ("claude", &[])];
        assert_eq!(similar("Codx", known), ["`codex`"]);
        assert_eq!(similar("something", known), [""; 0]);
    }
}
