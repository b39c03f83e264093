import BridgeTestSupport
import BridgeTypes
import ChatModel
import Dialects
import Testing
import Upstream

@testable import BridgeCore
@testable import IRCServer
@testable import Rooms

/// Backends repeat what was shown to them; nobody else is to see it.
@Suite("Secrets in a backend's words")
struct SecretWordsTests {
    private static let secret = "PLANTED+in/every=way"

    struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var shown: UpstreamCredentials
        /// Frames; `close …` closes with 1008.
        var said: [String]
    }

    private static let socket = UpstreamCredentials(socket: .accessToken(secret))
    private static let ok = #"{"kind":"auth","state":"ok"}"#

    static let rows = [
        Row(testDescription: "a close", shown: socket, said: [ok, "close invalid token: \(secret)"]),
        Row(
            testDescription: "a header in a close",
            shown: UpstreamCredentials(headers: [.init(name: "Authorization", value: "Bearer " + secret)]),
            said: ["close invalid token: \(secret)."]),
        Row(
            testDescription: "a cookie in a close",
            shown: UpstreamCredentials(headers: [.init(name: "Cookie", value: "a=b; session=" + secret)]),
            said: ["close no session \(secret)"]),
        Row(
            testDescription: "a query in a close",
            shown: UpstreamCredentials(query: [.init(name: "token", value: secret)]),
            said: ["close ?token=PLANTED%2Bin%2Fevery%3Dway or \(secret)"]),
        Row(
            testDescription: "a close whose words are cut", shown: socket,
            said: [ok, "close \(String(repeating: "x", count: 100)) \(secret)"]),
        Row(
            testDescription: "a login refused", shown: socket,
            said: [#"{"kind":"auth","state":"failed","text":"wrong: \#(secret)"}"#]),
        Row(
            testDescription: "an error before the login is answered", shown: socket,
            said: [#"{"kind":"error","code":"\#(secret)","text":"wrong: \#(secret)"}"#]),
        Row(
            testDescription: "a fatal error", shown: socket,
            said: [#"{"kind":"error","code":"x","text":"wrong: \#(secret)","fatal":true}"#]),
        Row(
            testDescription: "an error later", shown: socket,
            said: [ok, #"{"kind":"error","code":"\#(secret)","text":"wrong: \#(secret)"}"#]),
        Row(
            testDescription: "a notice", shown: socket,
            said: [ok, #"{"kind":"system","text":"you are \#(secret)"}"#]),
        Row(
            testDescription: "a kind of frame", shown: socket, said: [ok, #"{"kind":"\#(secret)"}"#]),
    ]

    @Test("what the backend repeats of what we showed to it reaches nobody", arguments: rows)
    func repeated(_ row: Row) throws {
        let stage = try SessionStage(
            StubDialect {
                $0.opening = .authenticates
                $0.confirmation = .receipt
                $0.messageIDOrigin = .server
            }
        ) { $0.authenticates = true }
        stage.harness.credentials[0] = .success(row.shown)
        stage.harness.start()
        stage.enter("bob", 1, caps: "echo-message standard-replies")
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        var seen: [String] = []
        for words in row.said {
            if words.hasPrefix("close ") {
                stage.harness.closeUpstream(0, code: 1008, reason: String(words.dropFirst(6)))
            } else {
                stage.backend(words)
            }
            seen += stage.harness.bridge.roomStates.compactMap(\.reason)
        }
        stage.harness.advance(by: .seconds(60))
        stage.enter("eve", 2)
        seen += stage.heard(1) + stage.harness.bridge.roomStates.compactMap(\.reason)
        seen += stage.harness.notes.flatMap { [$0.text] + $0.metadata.sorted.map(\.value) }
        #expect(seen.count > 3)
        #expect(!seen.contains { $0.contains("PLANTED") }, "\(seen.filter { $0.contains("PLANTED") })")
        if row.said.last?.contains("xxx") == false {
            #expect(seen.contains { $0.contains("***") })
        }
    }

    @Test(
        "what it repeats of what an account showed over its own link reaches nobody either",
        arguments: [
            #"{"kind":"error","code":"\#(secret)","text":"rejected: \#(secret) is read-only"}"#,
            #"{"kind":"error","code":"rejected: \#(secret)","text":""}"#,
            #"{"kind":"error","code":"x","text":"rejected: \#(secret)","fatal":true}"#,
            "close rejected: \(secret)", #"{"kind":"auth","state":"failed","text":"wrong: \#(secret)"}"#,
        ])
    func repeatedToAccount(_ words: String) throws {
        let stage = try OwnLinkStage(OwnLinkStage.silent())
        stage.harness.credentials[OwnLinkStage.own] = .success(
            UpstreamCredentials(query: [.init(name: "token", value: Self.secret)]))
        stage.enterBoth()
        stage.harness.send(1, "PRIVMSG #lobby :hello")
        if words.hasPrefix("close ") {
            stage.harness.closeUpstream(OwnLinkStage.own, code: 1008, reason: String(words.dropFirst(6)))
        } else {
            stage.backend(words, over: OwnLinkStage.own)
        }
        stage.harness.advance(by: .seconds(1))
        let seen =
            stage.heard(1) + stage.heard(2)
            + stage.harness.notes.flatMap { [$0.text] + $0.metadata.sorted.map(\.value) }
        #expect(!seen.contains { $0.contains("PLANTED") }, "\(seen.filter { $0.contains("PLANTED") })")
        #expect(seen.contains { $0.contains("rejected: ***") || $0.contains("wrong: ***") }, "\(seen)")
    }
}
