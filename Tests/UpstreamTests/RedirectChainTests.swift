import HTTPProtocol
import Testing

@testable import Upstream

@Suite("Redirects of a link")
struct LinkRedirectTests {
    struct Row: CustomTestStringConvertible {
        var testDescription: String
        var start: String
        var locations: [String]
        /// Where the last one leads, or why it is not followed.
        var outcome: String

        init(_ name: String, _ start: String, _ locations: [String], _ outcome: String) {
            testDescription = name
            self.start = start
            self.locations = locations
            self.outcome = outcome
        }
    }

    static let rows: [Row] = [
        Row("a path", "ws://h/a", ["/b"], "ws://h/b"),
        Row("a page's scheme", "ws://h/a", ["http://h/b"], "ws://h/b"),
        Row("into encryption", "ws://h/a", ["https://h/a"], "wss://h/a"),
        Row(
            "another port of the host", "ws://h/a", ["ws://h:8080/a"],
            "the server redirects (302) from ws://h/a to ws://h:8080/a, which is another port"),
        Row(
            "into encryption at another port", "ws://h:8080/a", ["wss://h:8443/a"],
            "the server redirects (302) from ws://h:8080/a to wss://h:8443/a, which is another port"),
        Row(
            "from a port of its own to the usual one", "ws://h:8080/a", ["https://h/a"],
            "the server redirects (302) from ws://h:8080/a to wss://h/a, which is another port"),
        Row("into encryption at the same port", "ws://h:8080/a", ["wss://h:8080/a"], "wss://h:8080/a"),
        Row("another query is another place", "ws://h/a", ["/a?x=1"], "ws://h/a"),
        Row("five in a row", "ws://h/0", ["/1", "/2", "/3", "/4", "/5"], "ws://h/5"),
        Row("within a socket file", "ws+unix:///run/x.sock:/a", ["/b"], "ws+unix:///run/x.sock:/b"),
        Row(
            "six in a row", "ws://h/0", ["/1", "/2", "/3", "/4", "/5", "/6"],
            "the server redirects (302) from ws://h/5 to ws://h/6 after 5 other redirects, which is one too many"),
        Row(
            "another host", "ws://h/a?token=hunter2", ["wss://evil.example/a?token=hunter2"],
            "the server redirects (302) from ws://h/a to wss://evil.example/a, which is another host; "
                + "redirects are followed on one host only"),
        Row(
            "a host that only looks like it", "ws://h/a", ["ws://h.evil.example/a"],
            "the server redirects (302) from ws://h/a to ws://h.evil.example/a, which is another host; "
                + "redirects are followed on one host only"),
        Row(
            "out of encryption", "wss://h/a", ["ws://h/a"],
            "the server redirects (302) from wss://h/a to ws://h/a, which is not encrypted"),
        Row(
            "into encryption and out again", "ws://h/a", ["wss://h/a", "http://h/b"],
            "the server redirects (302) from wss://h/a to ws://h/b, which is not encrypted"),
        Row(
            "to itself", "ws://h/a", ["/a"],
            "the server redirects (302) from ws://h/a to ws://h/a, where we have been: a loop"),
        Row(
            "in a circle", "ws://h/a", ["/b", "/a"],
            "the server redirects (302) from ws://h/b to ws://h/a, where we have been: a loop"),
        Row(
            "out of a socket file", "ws+unix:///run/x.sock:/a", ["ws://localhost/a"],
            "the server redirects (302) from ws+unix:///run/x.sock:/a to ws://localhost/a, which is another host; "
                + "redirects are followed on one host only"),
        Row(
            "into a socket file", "ws://h/a", ["ws+unix:///run/x.sock:/a"],
            "the server redirects (302) from ws://h/a to ws+unix:///run/x.sock:/a, which is another host; "
                + "redirects are followed on one host only"),
        Row(
            "another scheme", "ws://h/a", ["ftp://h/hunter2"],
            "the server redirects (302) from ws://h/a to an address that cannot be used: "
                + "the scheme ftp is not supported"),
    ]

    @Test("a redirect is followed on the same host and port, into encryption and never out of it", arguments: rows)
    func follow(row: Row) throws {
        var redirects = RedirectChain(start: try HTTPURL(parsing: row.start))
        var outcome = ""
        for location in row.locations {
            do throws(RedirectChain.Refusal) {
                outcome = try redirects.follow(status: 302, location: location).description
            } catch {
                outcome = error.sentence
            }
        }
        #expect(outcome == row.outcome)
        #expect(!outcome.contains("hunter2"))
    }
}
