import Dialects
import Foundation
import IRCProtocol
import Testing

@testable import BridgeCore
@testable import ChatBridge

/// A configuration that a page shows.
struct DocumentedConfiguration: Sendable, CustomTestStringConvertible {
    var page: String
    var line: Int
    var text: String

    var testDescription: String { "\(page):\(line)" }

    /// The fenced blocks of a page that say `toml`.
    static func all(in page: String) throws -> [Self] {
        var found: [Self] = []
        var open: Self?
        let text = try DocumentationTests.text(of: page)
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            if line == "```toml" {
                open = Self(page: page, line: index + 2, text: "")
            } else if line == "```", let block = open {
                found.append(block)
                open = nil
            } else {
                open?.text += line + "\n"
            }
        }
        return found
    }
}

@Suite("What the documentation says of the configuration")
struct DocumentationTests {
    static func text(of page: String) throws -> String {
        try String(contentsOf: ConfigurationTests.repository.appendingPathComponent(page), encoding: .utf8)
    }

    static let pages: [String] = {
        let docs = ConfigurationTests.repository.appendingPathComponent("docs").path
        let found = FileManager.default.enumerator(atPath: docs)?.compactMap { $0 as? String } ?? []
        return ["README.md"] + found.filter { $0.hasSuffix(".md") }.map { "docs/" + $0 }.sorted()
    }()

    static let blocks = pages.flatMap { (try? DocumentedConfiguration.all(in: $0)) ?? [] }

    @Test("every configuration that a page shows loads", arguments: blocks)
    func loads(_ block: DocumentedConfiguration) {
        // Secrets and descriptions that a page names are there.
        let machine = ConfigurationSurroundings(variables: [:], hostName: "edge.example.org") { path in
            if path == "chatbridge.toml" { return .success(Array(block.text.utf8)) }
            return .success(Array((path.hasSuffix(".json") ? #"{"decode":[]}"# : "secret\n").utf8))
        }
        do {
            _ = try ConfigurationLoader.load(ConfigurationRequest(), from: machine)
        } catch {
            Issue.record("\(error.problems.map(\.description))")
        }
    }

    @Test("the tables of docs/IRC.md are those that the program runs by")
    func tables() throws {
        let page = try Self.text(of: "docs/IRC.md")
        for section in IRCSurface.sections {
            let made = "<!-- made: \(section.name) -->\n\n\(section.text)\n\n<!-- end -->\n"
            #expect(page.contains(made), "\(section.name): scripts/generate-docs")
        }
    }

    @Test("the page says what every capability is good for")
    func purposes() {
        let unsaid = IRCCapabilityTable.rows.compactMap(\.names.first).filter { IRCSurface.purposes[$0] == nil }
        #expect(unsaid == [])
    }

    @Test("every dialect has a page with a configuration, and the index leads to it")
    func pagesOfDialects() throws {
        let index = try Self.text(of: "docs/BACKENDS.md")
        for name in DialectTable.names + ["custom"] {
            let page = "docs/backends/\(name).md"
            #expect(index.contains("(backends/\(name).md)"), "\(name)")
            #expect(Self.blocks.contains { $0.page == page && $0.text.contains("dialect = ") }, "\(name)")
        }
    }
}
