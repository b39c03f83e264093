import BridgeTestSupport
import Dialects
import Foundation
import IRCProtocol
import Testing
import Transport

@testable import BridgeCore
@testable import ChatBridge
@testable import Configuration
@testable import IRCServer
@testable import Rooms

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
        let text = try RepositoryFile.text(page)
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
    static let pages: [String] = {
        let docs = RepositoryFile.root.appendingPathComponent("docs").path
        let found = FileManager.default.enumerator(atPath: docs)?.compactMap { $0 as? String } ?? []
        return ["README.md"] + found.filter { $0.hasSuffix(".md") }.map { "docs/" + $0 }.sorted()
    }()

    static let pair = try? CertificateGenerator(
        names: ["irc.example.com"], notBefore: 0, notAfter: 4_000_000_000
    ).make()

    static let blocks = pages.flatMap { (try? DocumentedConfiguration.all(in: $0)) ?? [] }

    @Test("every configuration that a page shows loads", arguments: blocks)
    func loads(_ block: DocumentedConfiguration) {
        // Secrets and descriptions that a page names are there.
        let variables = ["CREDENTIALS_DIRECTORY": "/run/credentials"]
        let machine = ConfigurationEnvironment(variables: variables, hostName: "edge.example.org") { path in
            if path == "chatbridge.toml" { return .success(Array(block.text.utf8)) }
            if let pair = Self.pair, path.hasSuffix(".pem") {
                return .success(path.contains("key") ? pair.keyPEM : pair.certificatePEM)
            }
            if path.hasSuffix(".hash") { return .success(Array(examplePasswordHash.utf8)) }
            return .success(Array((path.hasSuffix(".json") ? #"{"decode":[]}"# : "secret\n").utf8))
        }
        do {
            _ = try ConfigurationLoader.load(ConfigurationRequest(), from: machine)
        } catch {
            Issue.record("\(error.problems.map(\.description))")
        }
    }

    @Test("what pages have of the program's tables is up to date, and every table has a place")
    func tables() throws {
        let pages = try Self.pages.map { try RepositoryFile.text($0) }
        for section in OfflineCommands.documentation {
            let made = "<!-- made: \(section.name) -->\n\n\(section.text)\n\n<!-- end -->\n"
            #expect(
                pages.count { $0.contains(made) } == 1,
                "no page has \(section.name) as scripts/generate-docs makes it: run it")
        }
    }

    @Test("the page says what every capability is good for")
    func purposes() {
        let unsaid = IRCCapabilityTable.rows.compactMap(\.names.first).filter { IRCSurface.purposes[$0] == nil }
        #expect(unsaid == [])
    }

    /// Source: the registry of IRCv3, ratified and drafts.
    private static let registered = [
        "account-notify", "account-tag", "away-notify", "batch", "cap-notify", "chghost", "echo-message",
        "extended-join",
        "extended-monitor", "invite-notify", "labeled-response", "message-tags", "multi-prefix", "no-implicit-names",
        "sasl", "server-time", "setname", "standard-replies", "sts", "tls", "userhost-in-names",
        "draft/account-registration", "draft/channel-rename", "draft/chathistory", "draft/event-playback",
        "draft/extended-isupport", "draft/message-redaction", "draft/metadata-2", "draft/multiline", "draft/pre-away",
        "draft/read-marker",
    ]

    @Test("a capability of IRCv3 that is not offered stands in the table of what is not supported")
    func absentCapabilities() throws {
        let page = try RepositoryFile.text("docs/reference/irc.md")
        let section = try #require(page.firstRange(of: "\n## Unsupported IRC features\n"))
        let rows = page[section.upperBound...].split(separator: "\n").filter { $0.hasPrefix("|") }
        let offered = Set(IRCCapabilityTable.rows.flatMap(\.names))
        for name in Self.registered where !offered.contains(name) {
            let row = rows.first { $0.split(separator: "|").first?.contains("`\(name)`") == true }
            #expect(row != nil, "\(name) is neither offered nor explained")
        }
    }

    @Test("every dialect has a page with a configuration, and the index leads to it")
    func pagesOfDialects() throws {
        let index = try RepositoryFile.text("docs/BACKENDS.md")
        for name in DialectTable.names + ["custom"] {
            let page = "docs/backends/\(name).md"
            #expect(index.contains("(backends/\(name).md)"), "\(name)")
            #expect(Self.blocks.contains { $0.page == page && $0.text.contains("dialect = ") }, "\(name)")
        }
    }
}
