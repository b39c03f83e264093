import Glibc
import JSONText
import Transport

/// The output of a command: its width, and whether colours are shown.
struct TextScreen: Equatable {
    /// In columns; `.max` where the output is no terminal.
    var width = Int.max
    var isColored = false
    var isTerminal = false

    enum Style: String {
        case plain = ""
        case strong = "1"
        case faint = "2"
        case red = "31"
        case green = "32"
        case yellow = "33"
        case blue = "34"
        case magenta = "35"
        case cyan = "36"
    }

    static func ofStandardOutput(_ color: ColorChoice, variables: [String: String]) -> TextScreen {
        let isTerminal = Machine.isTerminal(STDOUT_FILENO)
        return TextScreen(
            width: isTerminal ? columns : .max,
            isColored: color.isColored(isTerminal: isTerminal, variables: variables),
            isTerminal: isTerminal)
    }

    private static var columns: Int {
        var size = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col >= 20 else { return 80 }
        return Int(size.ws_col)
    }

    func styled(_ text: String, _ style: Style) -> String {
        isColored && style != .plain && !text.isEmpty ? "\u{1B}[\(style.rawValue)m\(text)\u{1B}[0m" : text
    }

    /// Text of a peer that cannot steer the terminal.
    static func clean(_ text: String) -> String {
        var bytes: [UInt8] = []
        LogText.appendPlain(text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The beginning of a line that is too wide, with a mark.
    func fitted(_ text: String, to most: Int? = nil) -> String {
        let most = most ?? width
        return text.count > most ? text.prefix(max(most - 1, 0)) + "…" : text
    }
}

/// Rows in columns, fitted to a screen.
struct TextTable {
    struct Column {
        var title: String
        var isNumber = false
        /// The narrowest width to which a wide screenful is cut.
        var least: Int?
        /// Columns with higher numbers go first where the screen is too narrow; 0: never.
        var omission = 0
    }

    struct Cell: ExpressibleByStringLiteral {
        var text: String
        var style = TextScreen.Style.plain

        init(_ text: String, _ style: TextScreen.Style = .plain) {
            self.text = TextScreen.clean(text)
            self.style = style
        }

        init(stringLiteral text: String) { self.init(text) }
    }

    let columns: [Column]
    private(set) var rows: [[Cell]] = []

    init(_ columns: [Column]) { self.columns = columns }

    mutating func append(_ row: [Cell]) { rows.append(row) }

    private static let gap = 2

    func lines(_ screen: TextScreen) -> [String] {
        var widths = columns.indices.map { index in
            max(columns[index].title.count, rows.map { $0[index].text.count }.max() ?? 0)
        }
        var shown = Array(columns.indices)
        func total() -> Int { shown.reduce(0) { $0 + widths[$1] } + Self.gap * (shown.count - 1) }
        // First what can be cut, then what can be left out.
        for index in columns.indices where total() > screen.width {
            if let least = columns[index].least {
                widths[index] = min(widths[index], max(least, widths[index] - (total() - screen.width)))
            }
        }
        while total() > screen.width,
            let least = shown.filter({ columns[$0].omission > 0 }).max(by: {
                columns[$0].omission < columns[$1].omission
            })
        {
            shown.removeAll { $0 == least }
        }
        let gap = String(repeating: " ", count: Self.gap)
        func line(_ cells: (Int) -> Cell) -> String {
            var line = ""
            for index in shown {
                let cell = cells(index)
                let text = screen.fitted(cell.text, to: widths[index])
                let padding = String(repeating: " ", count: widths[index] - text.count)
                let styled = screen.styled(text, cell.style)
                let isLast = index == shown.last
                line += columns[index].isNumber ? padding + styled : styled + (isLast ? "" : padding)
                if !isLast { line += gap }
            }
            return line
        }
        return [line { Cell(columns[$0].title, .strong) }] + rows.map { row in line { row[$0] } }
    }
}

/// Spans of time as tables show them.
enum ShortSpan {
    /// `8s`, `12m`, `3h 5m`, `3d 4h`.
    static func text(seconds: Int64) -> String {
        let seconds = max(0, seconds)
        if seconds < 60 { return "\(seconds)s" }
        if seconds < 3600 { return "\(seconds / 60)m" }
        if seconds < 86_400 { return joined(seconds / 3600, "h", seconds % 3600 / 60, "m") }
        return joined(seconds / 86_400, "d", seconds % 86_400 / 3600, "h")
    }

    private static func joined(_ large: Int64, _ unit: String, _ small: Int64, _ smallUnit: String) -> String {
        small == 0 ? "\(large)\(unit)" : "\(large)\(unit) \(small)\(smallUnit)"
    }
}
