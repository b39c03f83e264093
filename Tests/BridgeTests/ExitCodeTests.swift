import BridgeTestSupport
import Testing

@testable import ChatBridge

@Suite("Exit codes")
struct ExitCodeTests {
    @Test("the page of operations has the table of the program, word for word")
    func page() throws {
        let text = try RepositoryFile.text("docs/OPERATIONS.md")
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex(of: "| code | name | meaning |"))
        let table = lines[(start + 2)...].prefix { $0.hasPrefix("|") }
        #expect(table.map(String.init) == ExitCode.rows.map { "| \($0.code) | \($0.name) | \($0.meaning) |" })
    }

    @Test("each code has one row, in order, and the help of run names those of a daemon")
    func rows() throws {
        let codes = ExitCode.rows.map(\.code)
        let source = try RepositoryFile.text("Sources/ChatBridge/Process/ExitCode.swift")
        let named = source.matches(of: /static let [a-zA-Z]+: Int32 = ([0-9]+)/).compactMap { Int32($0.1) }
        #expect(codes == named)
        #expect(codes == Array(Set(codes)).sorted())
        let help = CommandHelp.text(.run)
        for code in [0, 64, 69, 74, 78] as [Int32] { #expect(help.contains("\(code) ")) }
        #expect(help.contains("128+N"))
    }
}
