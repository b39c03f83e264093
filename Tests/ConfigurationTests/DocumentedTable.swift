import BridgeTestSupport

@testable import Configuration

/// A table of a page.
struct DocumentedTable {
    /// The cells of the first line.
    var head: [String]
    var rows: [[String]]

    /// The tables of a page, in order.
    static func all(in page: String) throws -> [Self] {
        var found: [Self] = []
        var open: Self?
        for line in try RepositoryFile.text(page).split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("|") else {
                if let table = open { found.append(table) }
                open = nil
                continue
            }
            let cells = Self.cells(line)
            if open == nil {
                open = Self(head: cells, rows: [])
            } else if !cells.allSatisfy({ !$0.isEmpty && $0.allSatisfy { "-: ".contains($0) } }) {
                open?.rows.append(cells)
            }
        }
        if let open { found.append(open) }
        return found
    }

    /// The cells of a line; a bar within backticks is part of one.
    private static func cells(_ line: Substring) -> [String] {
        var cells: [String] = []
        var cell = ""
        var isCode = false
        for character in line.dropFirst() {
            if character == "`" { isCode.toggle() }
            if character == "|", !isCode {
                cells.append(String(Trimmed.text(cell[...])))
                cell = ""
            } else {
                cell.append(character)
            }
        }
        return cells
    }

    /// What stands between backticks in a cell.
    static func names(in cell: String) -> [String] {
        cell.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            .filter { $0.offset % 2 == 1 }.map { String($0.element) }
    }

    /// What the first cells of its rows name.
    var names: [String] { rows.flatMap { Self.names(in: $0[0]) } }
}
