import BridgeTestSupport
import Testing

@testable import Configuration

@Suite("Tokens of clients in the configuration")
struct BearerConfigurationTests {
    private static let backend = """
        [backends.main]
        dialect = "jwt-rooms"
        url = "wss://chat.example.com/ws/chat/{room}"

        [[rooms]]
        name = "lobby"
        backend = "main"

        """

    private static func account(_ name: String, _ owners: String) -> String {
        "[[accounts]]\nname = \"\(name)\"\npassword = \"\(examplePasswordHash)\"\nbearer = \(owners)\n"
    }

    @Test("the backend and the people whom it names are taken")
    func taken() throws {
        let text = Self.backend + "[identity]\nbearer = \"main\"\n" + Self.account("colette", "[\"colette\", \"17\"]")
        let configuration = try load(text)
        #expect(configuration.identity.bearer == "main")
        #expect(configuration.accounts.first?.bearer == ["colette", "17"])
        #expect(try load(Self.backend).identity.bearer.isEmpty)
    }

    @Test("a backend that knows its people settles who comes in from other machines")
    func settled() {
        let open = "[[listeners]]\nbind = \"irc+insecure://0.0.0.0:6667\"\n"
        #expect(problems(Self.backend + open).count == 1)
        #expect(problems(Self.backend + open + "[identity]\nbearer = \"main\"") == [])
        #expect(problems(Self.backend + "[identity]\nrequire_login = \"always\"\nbearer = \"main\"") == [])
    }

    struct Mistake: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var text: String
        var complaint: String
    }

    @Test(
        "what is wrong is said where it stands",
        arguments: [
            Mistake(
                testDescription: "a slip of the pen", text: "[identity]\nbearer = \"mian\"",
                complaint: "there is no backend \"mian\" (did you mean \"main\"?)"),
            Mistake(
                testDescription: "a backend without a room",
                text: "[backends.spare]\ndialect = \"jwt-rooms\"\nurl = \"wss://b.example.com/{room}\"\n"
                    + "[identity]\nbearer = \"spare\"",
                complaint: "backend \"spare\" has no room"),
            Mistake(
                testDescription: "a dialect that has no such call",
                text: "[[rooms]]\nname = \"kitchen\"\nurl = \"ws://127.0.0.1:8080/chat\"\n"
                    + "[identity]\nbearer = \"kitchen\"",
                complaint: "backend \"kitchen\" speaks \"envelope\", which cannot say whose a token is"),
            Mistake(
                testDescription: "no way to show a token",
                text: "[identity]\nsasl = [\"PLAIN\"]\nbearer = \"main\"",
                complaint: "bearer means nothing without \"OAUTHBEARER\" in sasl"),
            Mistake(
                testDescription: "people of no backend", text: account("colette", "[\"17\"]"),
                complaint: "bearer means nothing without bearer = \"BACKEND\" in [identity]"),
            Mistake(
                testDescription: "two accounts of one person",
                text: "[identity]\nbearer = \"main\"\n" + account("colette", "[\"17\"]")
                    + account("remy", "[\"3\", \"17\"]"),
                complaint: "the accounts \"colette\" and \"remy\" cannot both be \"17\""),
            Mistake(
                testDescription: "an empty id", text: "[identity]\nbearer = \"main\"\n" + account("colette", "[\"\"]"),
                complaint: "nobody has an empty id"),
        ])
    func mistakes(_ row: Mistake) {
        let found = problems(Self.backend + row.text)
        #expect(found.count == 1 && found.first?.contains(row.complaint) == true, "\(found)")
        #expect(found.first?.hasPrefix("chatbridge.toml:") == true)
    }
}
