import BridgeTestSupport
import Foundation
import Testing

@testable import ChatBridge

@Suite("What the table of commands gives: completions and the manual page")
struct CommandPagesTests {
    @Test("a completion has every command and every flag, and nothing hidden", arguments: CompletionShell.allCases)
    func completions(_ shell: CompletionShell) {
        let script = CompletionScript.text(shell)
        let words = Set(script.split { !($0.isLetter || $0.isNumber || $0 == "-") }.map(String.init))
        for row in CommandTable.rows { #expect(words.contains(row.name.rawValue) == !row.isHidden, "\(row.name)") }
        for flag in CommandTable.globalFlags + CommandTable.visibleRows.flatMap(\.flags) {
            #expect(words.contains(shell == .fish ? flag.name : "--\(flag.name)"), "\(flag.name)")
        }
        for word in ["self-signed", "explain", "zsh", "never", "debug"] { #expect(words.contains(word), "\(word)") }
    }

    @Test("the manual page has every command, flag and exit status")
    func manual() throws {
        let page = ManualPage.text
        for row in CommandTable.visibleRows {
            #expect(page.contains("\n.It Cm \(row.name.rawValue)"), "\(row.name)")
            for flag in row.flags { #expect(page.contains("\\-\(flag.name)"), "\(flag.name)") }
        }
        for row in ExitCode.rows { #expect(page.contains("\n.It \(row.code)\n"), "\(row.code)") }
        // A line of text that begins so would be taken for a macro.
        for line in page.split(separator: "\n") where line.hasPrefix(".") {
            #expect(line.contains(/^\.[A-Z][a-z]|^\.\\"/), "\(line)")
        }
    }
}
