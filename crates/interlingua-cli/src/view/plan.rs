//! Shows the agent's plan as a list with check marks.

use interlingua::event::{PlanItem, PlanStatus, PlanUpdated};

use super::clean;
use super::style::{Line, Style};
use super::width;

/// The lines of a plan.
pub(crate) fn lines(plan: &PlanUpdated<'_>, columns: usize) -> Vec<Line> {
    if plan.items.is_empty() {
        return vec![Line::new("Plan cleared", Style::DIM)];
    }
    let done = plan.items.iter().filter(|item| item.status == PlanStatus::Completed).count();
    let mut lines = vec![
        Line::new("Plan", Style::BOLD)
            .with(format!(" {done} of {} done", plan.items.len()), Style::DIM),
    ];
    lines.extend(plan.items.iter().map(|item| item_line(item, columns)));
    lines
}

fn item_line(item: &PlanItem<'_>, columns: usize) -> Line {
    let gone = Style { dim: true, strike: true, ..Style::PLAIN };
    let (mark, mark_style, style) = match &item.status {
        PlanStatus::Pending => ("☐", Style::PLAIN, Style::PLAIN),
        PlanStatus::InProgress => ("◐", Style::CYAN, Style::BOLD),
        PlanStatus::Completed => ("☑", Style::GREEN, Style::DIM),
        PlanStatus::Cancelled => ("☒", Style::DIM, gone),
        PlanStatus::Blocked => ("⚠", Style::YELLOW, Style::PLAIN),
        _ => ("·", Style::DIM, Style::PLAIN),
    };
    let text = clean::one_line(&item.text.to_plain(), columns);
    let text = width::shortened(&text, columns.saturating_sub(4).max(10));
    Line::new(format!("  {mark} "), mark_style).with(text, style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::style::Palette;
    use interlingua::json::Text;

    #[test]
    fn every_step_has_the_mark_of_its_status() {
        let item =
            |text, status| PlanItem { text: Text::plain(text), status, ..PlanItem::default() };
        let items = vec![
            item("look", PlanStatus::Completed),
            item("edit\nmore", PlanStatus::InProgress),
            item("test", PlanStatus::Pending),
            item("old", PlanStatus::Cancelled),
        ];
        let plan = PlanUpdated { items, ..PlanUpdated::default() };
        let lines: Vec<_> =
            lines(&plan, 40).iter().map(|line| line.to_terminal(Palette::None)).collect();
        let expected = ["Plan 1 of 4 done", "  ☑ look", "  ◐ edit more", "  ☐ test", "  ☒ old"];
        assert_eq!(lines, expected);
    }
}
