import Foundation
import IRCProtocol
import Testing

/// What the tables offer, the transcripts use: a client asks for each capability, sends each command, logs in by each mechanism,
/// and is told each token.
@Suite("What the transcripts cover")
struct TranscriptCoverageTests {
    /// Told to clients, which act on it and ask for nothing.
    private static let onlyTold: Set<String> = ["sts"]

    /// What clients and bridge say in all transcripts.
    private struct Said {
        var requested: Set<String> = []
        var listed: Set<String> = []
        var commands: Set<String> = []
        var mechanisms: Set<String> = []
        var tokens: Set<String> = []

        mutating func read(_ line: Substring) {
            if line.hasPrefix("# ") || line.hasPrefix("C"), let caps = line.firstRange(of: " caps: ") {
                // The head's list goes on to `with:`; what stands behind that is no capability's name.
                requested.formUnion(line[caps.upperBound...].split(separator: " ").map(String.init))
            }
            guard let match = line.firstMatch(of: /^C[0-9]+([<>])\|? (?:@\S+ +)?(?::\S+ +)?(\S+) ?(.*)$/) else {
                return
            }
            let (verb, rest) = (match.2.uppercased(), match.3)
            var params = (rest.prefix { $0 != ":" } + "").split(separator: " ").map(String.init)
            let trailing = rest.firstRange(of: ":").map { String(rest[$0.upperBound...]) }
            if match.1 == ">" {
                commands.insert(verb)
                params += trailing?.split(separator: " ").map(String.init) ?? []
                if verb == "CAP", params.first?.uppercased() == "REQ" { requested.formUnion(params.dropFirst()) }
                if verb == "AUTHENTICATE", let word = params.first { mechanisms.insert(word.uppercased()) }
            } else if verb == "CAP", params.contains("LS") {
                listed.formUnion((trailing ?? "").split(separator: " ").map { String($0.prefix { $0 != "=" }) })
            } else if verb == "005" {
                tokens.formUnion(rest.split(separator: " ").dropFirst().map { String($0.prefix { $0 != "=" }) })
            }
        }
    }

    private static let said: Said = {
        var said = Said()
        for file in TranscriptTests.files {
            let url = TranscriptTests.folder.appendingPathComponent(file)
            for line in ((try? String(contentsOf: url, encoding: .utf8)) ?? "").split(separator: "\n") {
                said.read(line)
            }
        }
        return said
    }()

    @Test("every capability is asked for by a client, under each of its names")
    func capabilities() {
        for name in IRCCapabilityTable.rows.flatMap(\.names) {
            let isThere = Self.onlyTold.contains(name) ? Self.said.listed : Self.said.requested
            #expect(isThere.contains(name), "no transcript has a client with \(name)")
        }
    }

    @Test("every command is sent by a client", arguments: CommandTableTests.verbs)
    func commands(verb: String) {
        #expect(Self.said.commands.contains(verb), "no client sends \(verb)")
    }

    @Test("a client logs in by every mechanism", arguments: SASLMechanism.allCases)
    func mechanisms(mechanism: SASLMechanism) {
        #expect(Self.said.mechanisms.contains(mechanism.rawValue), "no client logs in by \(mechanism.rawValue)")
    }

    @Test("every token of 005 is told to a client")
    func tokens() throws {
        // The names stand where the tokens are made, and nowhere else.
        let source = TranscriptTests.folder.appendingPathComponent(
            "../../../Sources/IRCServer/IRCServer+ISupport.swift")
        let text = try String(contentsOf: source.standardizedFileURL, encoding: .utf8)
        let names = Set(text.matches(of: /support\.add\("([^"]+)"/).map { String($0.1) })
        #expect(names.count >= 30)
        #expect(names.subtracting(Self.said.tokens).sorted() == [], "no client is told of these")
    }
}
