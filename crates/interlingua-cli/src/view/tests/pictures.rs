//! Draws screens as pictures (SVG) for the documentation, from recorded sessions.
//!
//! `scripts/screens` writes them to `docs/screens`; the test fails if they are not up to date.

use std::fmt::Write as _;
use std::io::Write as _;
use std::num::NonZeroU16;

use std::time::{Duration, Instant};

use interlingua::Entry;
use interlingua::event::{Data, ToolKind};
use interlingua_agents::permission::PermissionRequest;

use super::{TERMINAL, entries, folder, written};
use crate::asking::ALLOW;
use crate::question::Question;
use crate::view::{Terminal, View};

/// The size of a character cell, in pixels.
const CELL: (u32, u32) = (8, 18);
const MARGIN: u32 = 14;

/// The height of a terminal that shows a whole session.
const TALL: u16 = 90;

#[test]
fn pictures_are_up_to_date() {
    let fix = entries("tests/sessions/fix-a-test.jsonl");
    let terminal = Terminal { height: TALL, ..TERMINAL };
    let pictures = [
        ("fix-a-test", TALL, written(&fix, terminal)),
        ("working", TALL, working(&fix)),
        ("asked", 24, asked(&fix)),
    ];
    for (name, height, bytes) in pictures {
        let path = folder().join("../../docs/screens").join(format!("{name}.svg"));
        let picture = draw(&bytes, terminal.width, height);
        if std::env::var_os("UPDATE_SCREENS").is_some() {
            std::fs::write(&path, &picture).unwrap();
        }
        let current = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(picture, current, "docs/screens/{name}.svg: run scripts/screens");
    }
}

/// The screen while the second call runs, which is a command.
fn working(session: &[Entry]) -> Vec<u8> {
    let (mut view, mut out) = (View::new(Terminal { height: TALL, ..TERMINAL }), Vec::new());
    let now = Instant::now();
    let is_end = |(_, it): &(usize, &Entry)| it.event.data.kind() == "tool_ended";
    let (end, _) = session.iter().enumerate().filter(is_end).nth(1).unwrap();
    session.iter().take(end).for_each(|it| view.entry(it.borrowed(), now, &mut out));
    view.tick(now + Duration::from_secs(12), &mut out);
    out
}

/// The screen while the user is asked about an edit.
fn asked(session: &[Entry]) -> Vec<u8> {
    let (mut view, mut out) = (View::new(Terminal { height: 24, ..TERMINAL }), Vec::new());
    let request = session.iter().enumerate().find_map(|(at, entry)| match &entry.event.data {
        Data::PermissionRequested(request)
            if request.tool.as_ref().is_some_and(|it| *it == *"Edit") =>
        {
            Some((at, request))
        }
        _ => None,
    });
    let (at, request) = request.unwrap();
    let now = Instant::now();
    session.iter().take(at).for_each(|it| view.entry(it.borrowed(), now, &mut out));
    view.pause(&mut out);
    let request = PermissionRequest {
        id: String::new(),
        call: Vec::new(),
        tool: "Edit".to_owned(),
        kind: ToolKind::Edit,
        input: request.input.as_ref().map(|input| input.get().to_owned()),
        description: None,
        folder: "/srv/parser".into(),
        ..PermissionRequest::default()
    };
    for line in Question::new(&request, (TERMINAL.width, 24)).short() {
        write!(&mut out, "\r\n{line}").unwrap();
    }
    write!(&mut out, "\r\n{ALLOW} ").unwrap();
    out
}

fn draw(bytes: &[u8], width: u16, height: u16) -> String {
    let size = |number| NonZeroU16::new(number).unwrap();
    let mut parser = vt100::Parser::new(size(height), size(width), 0);
    parser.process(bytes);
    let screen = parser.screen();
    let rows: Vec<String> = screen.rows(0, width).collect();
    let used = rows.iter().rposition(|row| !row.trim().is_empty()).map_or(1, |last| last + 1);
    let (pixels_x, pixels_y) =
        (u32::from(width) * CELL.0 + 2 * MARGIN, used as u32 * CELL.1 + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{pixels_x}\" height=\"{pixels_y}\" \
         viewBox=\"0 0 {pixels_x} {pixels_y}\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#1b1e24\"/>\n\
         <g font-family=\"ui-monospace,SFMono-Regular,Menlo,Consolas,monospace\" \
         font-size=\"13\" xml:space=\"preserve\" fill=\"#d7dae0\">\n"
    );
    for row in 0..u16::try_from(used).unwrap() {
        draw_row(screen, row, width, &mut svg);
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// Draws a row: a text element for each run of characters in one style, at its column.
fn draw_row(screen: &vt100::Screen, row: u16, width: u16, svg: &mut String) {
    let baseline = MARGIN + u32::from(row) * CELL.1 + 13;
    let mut runs: Vec<(u16, String, String)> = Vec::new();
    for column in 0..width {
        let Some(cell) = screen.cell(row, column).filter(|cell| !cell.is_wide_continuation())
        else {
            continue;
        };
        let text = if cell.contents().is_empty() { " " } else { cell.contents() };
        let style = style(cell);
        match runs.last_mut() {
            Some((_, last, run)) if *last == style => run.push_str(text),
            _ => runs.push((column, style, text.to_owned())),
        }
    }
    for (column, style, text) in runs.iter().filter(|(_, _, text)| !text.trim().is_empty()) {
        let spaces = text.len() - text.trim_start().len();
        let x = MARGIN + (u32::from(*column) + spaces as u32) * CELL.0;
        let text = text.trim().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        let length = unicode_width::UnicodeWidthStr::width(
            &*text.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">"),
        ) as u32
            * CELL.0;
        writeln!(
            svg,
            "<text x=\"{x}\" y=\"{baseline}\" textLength=\"{length}\"{style}>{text}</text>"
        )
        .unwrap();
    }
}

fn style(cell: &vt100::Cell) -> String {
    let color = match cell.fgcolor() {
        vt100::Color::Idx(1) => Some("#e8737a"),
        vt100::Color::Idx(2) => Some("#8ec07c"),
        vt100::Color::Idx(3) => Some("#e5c07b"),
        vt100::Color::Idx(4) => Some("#6cb0f2"),
        vt100::Color::Idx(5) => Some("#c58fe0"),
        vt100::Color::Idx(6) => Some("#5fc4c9"),
        _ => None,
    };
    let mut style = color.map(|color| format!(" fill=\"{color}\"")).unwrap_or_default();
    if cell.bold() {
        style.push_str(" font-weight=\"bold\"");
    }
    if cell.dim() {
        style.push_str(" opacity=\"0.6\"");
    }
    if cell.italic() {
        style.push_str(" font-style=\"italic\"");
    }
    if cell.underline() {
        style.push_str(" text-decoration=\"underline\"");
    }
    style
}
