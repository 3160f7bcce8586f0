//! Lists, newest first: by time, then by key, so that rows of one instant have an order too. One row more than asked for is
//! read, to know whether there is another page (H46).

use super::row::{list, micros};
use crate::{Error, Listed, Page, Result};
use emanet_core::ids::WorkspaceId;
use jiff::Timestamp;
use rusqlite::types::Value;
use rusqlite::{Row, Transaction, params_from_iter};
use std::fmt::Write;

/// The most rows of a page.
const LIMIT_MAX: u32 = 1000;

/// A query put together from the conditions that were asked for. Values are always bound, never written into the text.
#[derive(Debug)]
pub(super) struct Query {
    sql: String,
    values: Vec<Value>,
    has_condition: bool,
}

impl Query {
    /// Starts with `SELECT … FROM …`.
    pub(super) fn new(select: &str) -> Self {
        Self {
            sql: select.to_owned(),
            values: Vec::new(),
            has_condition: false,
        }
    }

    /// Adds a condition; each `?` in it takes the next of the values.
    pub(super) fn when(&mut self, condition: &str, values: impl IntoIterator<Item = Value>) {
        self.sql += if self.has_condition {
            " AND "
        } else {
            " WHERE "
        };
        self.has_condition = true;
        self.sql += condition;
        self.values.extend(values);
    }

    /// Adds a condition on a value that may not be asked for.
    pub(super) fn when_some<T: Into<Value>>(&mut self, condition: &str, value: Option<T>) {
        if let Some(value) = value {
            self.when(condition, [value.into()]);
        }
    }

    /// Adds a condition that any of these columns contains the text.
    pub(super) fn when_contains(&mut self, columns: &[&str], text: Option<&str>) {
        let Some(text) = text.filter(|text| !text.is_empty()) else {
            return;
        };
        let any: Vec<_> = columns
            .iter()
            .map(|column| format!("{column} LIKE ? ESCAPE '\\'"))
            .collect();
        let pattern = pattern(text);
        self.when(
            &format!("({})", any.join(" OR ")),
            columns.iter().map(|_| Value::Text(pattern.clone())),
        );
    }

    /// Every row, in this order.
    pub(super) fn all<T>(
        mut self,
        tx: &Transaction<'_>,
        order: &str,
        read: impl Fn(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        self.sql += order;
        list(tx, &self.sql, params_from_iter(self.values), read)
    }

    /// One page by time and keys, newest first. `place` says where a row stands.
    pub(super) fn page<T>(
        mut self,
        tx: &Transaction<'_>,
        page: &Page,
        columns: [&str; 2],
        read: impl Fn(&Row<'_>) -> Result<T>,
        place: impl Fn(&T) -> Place,
    ) -> Result<Listed<T>> {
        let [time, key] = columns;
        if let Some(after) = &page.after {
            let place = Place::parse(after)?;
            self.when(
                &format!("({time}, {key}) < (?, ?)"),
                [place.time.into(), place.key.into()],
            );
        }
        let limit = page.limit.clamp(1, LIMIT_MAX) as usize;
        let order = format!(" ORDER BY {time} DESC, {key} DESC LIMIT {}", limit + 1);
        let mut rows = self.all(tx, &order, read)?;
        let has_more = rows.len() > limit;
        rows.truncate(limit);
        let next = rows
            .last()
            .filter(|_| has_more)
            .map(|row| place(row).cursor());
        Ok(Listed { rows, next })
    }
}

/// One page over several workspaces: their pages, merged. Each is found by its own index, which begins with the workspace.
pub(super) fn merged<T>(
    workspaces: Vec<WorkspaceId>,
    page: &Page,
    one: impl Fn(WorkspaceId) -> Result<Listed<T>>,
    place: impl Fn(&T) -> Place,
) -> Result<Listed<T>> {
    let mut rows = Vec::new();
    let mut has_more = false;
    for workspace in workspaces {
        let listed = one(workspace)?;
        has_more |= listed.next.is_some();
        rows.extend(listed.rows);
    }
    rows.sort_by_key(|row| std::cmp::Reverse(place(row)));
    let limit = page.limit.clamp(1, LIMIT_MAX) as usize;
    has_more |= rows.len() > limit;
    rows.truncate(limit);
    let next = rows
        .last()
        .filter(|_| has_more)
        .map(|row| place(row).cursor());
    Ok(Listed { rows, next })
}

/// Where a row stands in its list.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    time: i64,
    key: Vec<u8>,
}

impl Place {
    pub(super) fn new(time: Timestamp, key: &[u8]) -> Self {
        Self {
            time: micros(time),
            key: key.to_vec(),
        }
    }

    /// Opaque to callers: hexadecimal digits.
    fn cursor(&self) -> String {
        let bytes = self.time.to_be_bytes().into_iter().chain(self.key.clone());
        bytes.fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
    }

    fn parse(cursor: &str) -> Result<Self> {
        let invalid = || Error::Conflict("the cursor is none of ours".into());
        let digits = cursor.as_bytes();
        if digits.len() < 16
            || !digits.len().is_multiple_of(2)
            || !digits.iter().all(u8::is_ascii_hexdigit)
        {
            return Err(invalid());
        }
        let bytes = digits
            .chunks(2)
            .map(|pair| {
                std::str::from_utf8(pair)
                    .ok()
                    .and_then(|pair| u8::from_str_radix(pair, 16).ok())
            })
            .collect::<Option<Vec<_>>>()
            .ok_or_else(invalid)?;
        let (time, key) = bytes.split_at(8);
        Ok(Self {
            time: i64::from_be_bytes(time.try_into().map_err(|_| invalid())?),
            key: key.to_vec(),
        })
    }
}

/// A LIKE pattern that finds the text anywhere, with its own wildcards taken literally.
fn pattern(text: &str) -> String {
    let mut pattern = String::from("%");
    for letter in text.chars() {
        if matches!(letter, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(letter);
    }
    pattern.push('%');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_comes_back_as_the_same_place() {
        let place = Place::new(Timestamp::from_microsecond(-5).unwrap(), b"\x00key\xff");
        assert_eq!(Place::parse(&place.cursor()).unwrap(), place);
    }

    #[test]
    fn foreign_cursor_is_refused() {
        for cursor in ["", "0", "zz", "00112233", "+0+0+0+0+0+0+0+0", "ğğğğğğğğ"] {
            assert!(
                matches!(Place::parse(cursor), Err(Error::Conflict(_))),
                "{cursor}"
            );
        }
    }

    #[test]
    fn wildcards_in_a_search_are_taken_literally() {
        assert_eq!(pattern(r"50%_\"), r"%50\%\_\\%");
    }
}
