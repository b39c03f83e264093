import BridgeTestSupport
import Testing

@testable import Configuration

@Suite("The difference between two configurations")
struct ConfigurationChangeTests {
    struct Row: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let old: String
        let new: String
        /// `title name name; title name`, without those that are empty.
        let expected: String

        init(_ description: String, _ old: String, _ new: String, _ expected: String) {
            (testDescription, self.old, self.new, self.expected) = (description, old, new, expected)
        }
    }

    private static let lobby = "[[rooms]]\nname = \"lobby\"\nurl = \"wss://h/\"\n"
    private static func described(_ text: String) -> String {
        "[dialects.mine]\n\(text)\n" + lobby + "dialect = \"mine\"\n"
    }
    private static let den = "[[rooms]]\nname = \"den\"\nurl = \"wss://h/\"\n"
    private static let alice = "[[accounts]]\nname = \"alice\"\ncertfp = [\"\(String(repeating: "a", count: 64))\"]\n"

    static let rows = [
        Row("nothing", lobby, lobby, ""),
        Row("a room comes", lobby, lobby + den, "rooms-opened den"),
        Row("a room goes", lobby + den, lobby, "rooms-closed den"),
        Row("a topic", lobby, lobby + "topic = \"x\"\n", "rooms-changed lobby"),
        Row("a default of rooms", lobby, "[room_defaults]\nmember_idle = \"1h\"\n" + lobby, "rooms-changed lobby"),
        Row("a url", lobby, lobby.replacing("wss://h/", with: "wss://g/"), "rooms-reconnected lobby"),
        Row(
            "a secret", lobby + "auth = { type = \"bearer\", token = \"one\" }\n",
            lobby + "auth = { type = \"bearer\", token = \"two\" }\n", "rooms-reconnected lobby"),
        Row("another channel", lobby, lobby + "channel = \"#x\"\n", "keys-deferred rooms.lobby.channel"),
        Row(
            "another dialect, and with it what the room is", lobby, lobby + "dialect = \"plainjson\"\n",
            "keys-deferred rooms.lobby.dialect"),
        Row(
            "a description whose frames are sorted in another way",
            described(#"decode = [{ event = "message", fields = { text = "/t" } }]"#),
            described(#"decode = [{ event = "message", fields = { text = "/u" } }]"#), "rooms-reconnected lobby"),
        Row(
            "a description by which messages are confirmed in another way", described("decode = []"),
            described("decode = []\necho = \"by-text\"\ncomment = \"x\""), "keys-deferred dialects.mine.echo"),
        Row(
            "a description that two keys together make wait", described("decode = []"),
            described(
                """
                decode = [{ event = "message", fields = { text = "/t", id = "/i" } }]
                encode = { message = { t = "{{text}}", i = "{{id}}" } }
                identity = "puppet"
                """), "keys-deferred dialects.mine.encode dialects.mine.identity"),
        Row(
            "a backend's user", "[backends.b]\nurl = \"wss://h/\"\n[[rooms]]\nname = \"lobby\"\nbackend = \"b\"\n",
            "[backends.b]\nurl = \"wss://h/\"\nuser_agent = \"x\"\n[[rooms]]\nname = \"lobby\"\nbackend = \"b\"\n",
            "rooms-reconnected lobby"),
        Row(
            "a backend's default that needs no new link",
            "[backends.b]\nurl = \"wss://h/\"\n[[rooms]]\nname = \"lobby\"\nbackend = \"b\"\n",
            "[backends.b]\nurl = \"wss://h/\"\nreceipts = \"off\"\n[[rooms]]\nname = \"lobby\"\nbackend = \"b\"\n",
            "rooms-changed lobby"),
        Row("an account comes", lobby, lobby + alice, "accounts-added alice"),
        Row("an account goes", lobby + alice, lobby, "accounts-removed alice"),
        Row("an account's rights", lobby + alice, lobby + alice + "admin = true\n", "accounts-changed alice"),
        Row(
            "an account's own log-in", lobby + alice,
            lobby + alice + "admin = true\nupstream = { lobby = { type = \"bearer\", token = \"x\" } }\n",
            "accounts-changed alice; keys-deferred accounts.alice.upstream"),
        Row(
            "limits", lobby, "[limits]\nmax_clients = 7\nsendq = \"1MiB\"\n" + lobby,
            "keys-changed limits.max_clients; keys-deferred limits.sendq"),
        Row(
            "what needs a restart", lobby,
            "[server]\nnetwork = \"x\"\nmotd = \"y\"\n[log]\nlevel = \"debug\"\n" + lobby,
            "keys-changed server.motd; keys-deferred server.network log.level"),
        Row(
            "the secret of a key that needs a restart", "[identity]\npassword = \"one\"\n" + lobby,
            "[identity]\npassword = \"two\"\n" + lobby, "keys-deferred identity.password"),
        Row(
            "the token of a listener for HTTP",
            "[[http]]\nbind = \"http://127.0.0.1:9000\"\nserve = [\"metrics\"]\ntoken = \"\(String(repeating: "a", count: 32))\"\n"
                + lobby,
            "[[http]]\nbind = \"http://127.0.0.1:9000\"\nserve = [\"metrics\"]\ntoken = \"\(String(repeating: "b", count: 32))\"\n"
                + lobby,
            "keys-deferred http.0.token"),
        Row(
            "a listener", lobby, "[[listeners]]\nbind = \"irc://127.0.0.1:7000\"\n" + lobby,
            "keys-deferred listeners.0.bind"),
    ]

    @Test("each key is in force at once, or named as one that is not", arguments: rows)
    func change(_ row: Row) throws {
        let change = ConfigurationChange(from: try load(row.old), to: try load(row.new))
        let told = change.lists.filter { !$0.names.isEmpty }.map { ([$0.title] + $0.names).joined(separator: " ") }
        #expect(told.joined(separator: "; ") == row.expected)
        #expect(change.isEmpty == row.expected.isEmpty)
        // What is not deferred is in force, so that the same file again changes nothing.
        let again = ConfigurationChange(from: change.result, to: try load(row.new))
        #expect(again.lists.filter { !$0.names.isEmpty && $0.title != "keys-deferred" }.isEmpty)
        #expect(again.deferredKeys == change.deferredKeys)
    }
}
