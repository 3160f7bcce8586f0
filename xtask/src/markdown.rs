//! Reading Markdown as far as the tidy checks need it: headings, code blocks, code spans, links.

/// What a page says that can be checked.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// Depth of each heading, in order.
    pub(crate) headings: Vec<usize>,
    /// Language and lines of each fenced block, in order.
    pub(crate) blocks: Vec<Block>,
    /// Texts between single backticks, with their line number.
    pub(crate) spans: Vec<(usize, String)>,
    /// Targets of links, with their line number.
    pub(crate) links: Vec<(usize, String)>,
}

/// A fenced block.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    /// `sh`, `toml`, … or empty.
    pub(crate) language: String,
    /// Its lines, with their number.
    pub(crate) lines: Vec<(usize, String)>,
}

impl Page {
    /// Reads a page.
    pub(crate) fn read(text: &str) -> Self {
        let mut page = Self::default();
        let mut open: Option<Block> = None;
        for (number, line) in text.lines().enumerate().map(|(i, l)| (i + 1, l)) {
            if let Some(language) = line.trim_start().strip_prefix("```") {
                match open.take() {
                    Some(block) => page.blocks.push(block),
                    None => {
                        open = Some(Block {
                            language: language.trim().to_owned(),
                            ..Block::default()
                        });
                    }
                }
            } else if let Some(block) = &mut open {
                block.lines.push((number, line.to_owned()));
            } else {
                page.read_prose(number, line);
            }
        }
        page
    }

    fn read_prose(&mut self, number: usize, line: &str) {
        let depth = line.chars().take_while(|c| *c == '#').count();
        if depth > 0 && line[depth..].starts_with(' ') {
            self.headings.push(depth);
        }
        let spans = line.split('`').skip(1).step_by(2);
        self.spans
            .extend(spans.map(|span| (number, span.to_owned())));
        let links = line
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split_once(')'));
        self.links
            .extend(links.map(|(target, _)| (number, target.to_owned())));
    }

    /// The commands of the shell blocks: comments dropped, lines joined at a closing backslash.
    pub(crate) fn commands(&self) -> Vec<(usize, String)> {
        let shells = self.blocks.iter().filter(|b| b.language == "sh");
        let mut commands: Vec<(usize, String)> = Vec::new();
        let mut goes_on = false;
        for (number, line) in shells.flat_map(|b| &b.lines) {
            let line = line.split(" # ").next().unwrap_or_default().trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let part = line.trim_end_matches('\\').trim_end();
            match commands.last_mut() {
                Some((_, command)) if goes_on => {
                    command.push(' ');
                    command.push_str(part);
                }
                _ => commands.push((*number, part.to_owned())),
            }
            goes_on = line.ends_with('\\');
        }
        commands
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read_into_what_can_be_checked() {
        let page = Page::read(
            "# One\nSee `crates/core` and [two](docs/two.md).\n## Two\n```sh\n# why\nemanet send \\\n  web   # here\n```\n",
        );
        assert_eq!(page.headings, [1, 2]);
        assert_eq!(page.spans, [(2, "crates/core".to_owned())]);
        assert_eq!(page.links, [(2, "docs/two.md".to_owned())]);
        assert_eq!(page.commands(), [(6, "emanet send web".to_owned())]);
    }
}
