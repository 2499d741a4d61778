//! The page by keys alone: what the tabulator reaches, and what it is called.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::qoe::browser::Browser;

/// More than the page has places for the focus.
const STEPS_MAX: usize = 80;
/// What the keyboard must reach before anything plays.
const REACHED: [&str; 8] =
    ["help-open", "search", "quality", "protocol", "rebuffering", "buffering", "start", "whole"];

/// The element that has the focus: its id, its name, and whether one sees that it has it.
const FOCUS: &str = "(() => {
  const e = document.activeElement;
  if (!e || e === document.body) return null;
  const label = e.labels && e.labels[0] ? e.labels[0].textContent : '';
  const name = (e.getAttribute('aria-label') || label || e.textContent || '').trim();
  const around = e.closest('.choice') || e;
  const seen = [e, around].some((it) => getComputedStyle(it).outlineStyle !== 'none');
  const box = around.getBoundingClientRect();
  return { id: e.id || e.name || e.className || e.tagName, name, seen,
    inside: box.left >= 0 && box.right <= innerWidth };
})()";

/// Presses and releases a key.
pub(super) fn press(browser: &mut Browser, key: &str, code: &str, number: u32) -> Result<()> {
    let text = match key {
        "Enter" => "\r",
        key if key.chars().count() == 1 => key,
        _ => "",
    };
    for kind in ["keyDown", "keyUp"] {
        let text = if kind == "keyDown" { text } else { "" };
        let event = json!({ "type": kind, "key": key, "code": code, "text": text,
            "windowsVirtualKeyCode": number });
        browser.call("Input.dispatchKeyEvent", event)?;
    }
    Ok(())
}

/// Goes through the page by the tabulator: all that can be used is reached, has a name, and shows
/// that it has the focus.
pub(super) fn walk(browser: &mut Browser) -> Result<()> {
    let mut reached = BTreeSet::new();
    for _ in 0..STEPS_MAX {
        press(browser, "Tab", "Tab", 9)?;
        let focus = browser.evaluate(FOCUS)?;
        let Value::Object(focus) = focus else { break };
        let id = focus["id"].as_str().unwrap_or_default().to_owned();
        ensure!(focus["name"] != "", "{id} has no name");
        ensure!(focus["seen"] == true, "one does not see that {id} has the focus");
        let is_skip_link = id == "skip";
        ensure!(is_skip_link || focus["inside"] == true, "{id} has the focus outside of the page");
        if !reached.insert(id) {
            break;
        }
    }
    for id in REACHED {
        ensure!(reached.contains(id), "the tabulator does not reach {id}: {reached:?}");
    }
    ensure!(reached.contains("clip"), "the tabulator reaches no clip: {reached:?}");
    Ok(())
}

/// Shows the keys and hides them; searches, finds nothing, and finds the clip again.
pub(super) fn search(browser: &mut Browser) -> Result<()> {
    let limit = Duration::from_secs(10);
    browser.evaluate("document.activeElement.blur()")?;
    press(browser, "?", "Slash", 191)?;
    browser.wait_for("document.querySelector('#help').open", limit)?;
    press(browser, "Escape", "Escape", 27)?;
    browser.wait_for("!document.querySelector('#help').open", limit)?;
    browser.evaluate("document.activeElement.blur()")?;
    press(browser, "/", "Slash", 191)?;
    browser.wait_for("document.activeElement.id === 'search'", limit)?;
    for key in ["x", "p"] {
        press(browser, key, "", 0)?;
    }
    // A letter that is written starts nothing.
    browser.wait_for("!document.querySelector('#no-clips').hidden", limit)?;
    ensure!(browser.evaluate("window.plait.state")? == "idle", "a letter in a text was obeyed");
    for _ in 0..2 {
        press(browser, "Backspace", "Backspace", 8)?;
    }
    browser.wait_for("document.querySelectorAll('#clips input').length > 0", limit)?;
    browser.evaluate("document.activeElement.blur()")?;
    Ok(())
}

/// Begins a run by the form's button, and stops it: one run more is kept, and it is told as cut.
pub(super) fn cut_short(browser: &mut Browser) -> Result<()> {
    let limit = Duration::from_secs(20);
    browser.evaluate("document.querySelector('#start').focus()")?;
    press(browser, "Enter", "Enter", 13)?;
    browser.wait_for("document.querySelector('#stage').dataset.phase === 'playing'", limit)?;
    browser.evaluate("document.activeElement.blur()")?;
    press(browser, "s", "KeyS", 83)?;
    browser.wait_for("window.plait.state === 'kept'", limit)?;
    ensure!(browser.evaluate("window.plait.record.complete")? == false, "it was not cut");
    let rows = browser.evaluate("document.querySelectorAll('#runs-body tr').length")?;
    ensure!(rows == 2, "{rows} runs are kept, and there were 2");
    Ok(())
}

/// Puts all runs side by side, with the space key.
pub(super) fn compare_all(browser: &mut Browser) -> Result<()> {
    let limit = Duration::from_secs(10);
    browser.wait_for("document.querySelectorAll('#runs-body tr').length >= 2", limit)?;
    for row in 0..2 {
        let focus = format!("document.querySelectorAll('#runs-body input')[{row}].focus()");
        browser.evaluate(&focus)?;
        press(browser, " ", "Space", 32)?;
    }
    browser.wait_for("document.querySelectorAll('#compare-head th').length === 2", limit)?;
    browser.wait_for("document.querySelectorAll('#compare-charts svg').length === 4", limit)?;
    Ok(())
}
