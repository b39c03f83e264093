import HTTPProtocol
import Testing

@Suite struct HTTPReferenceTests {
    struct Row: CustomTestStringConvertible {
        var base: String
        var location: String
        /// The URL with its query, or the error's sentence.
        var result: String
        var testDescription: String { "\(base) → \(location)" }

        init(_ base: String, _ location: String, _ result: String) {
            self.base = base
            self.location = location
            self.result = result
        }
    }

    static let rows: [Row] = [
        Row("ws://h/a/b?q", "ws://h/c", "ws h:80 /c"),
        Row("ws://h/a/b?q", "wss://h/c?x=1", "wss h:443 /c?x=1"),
        Row("ws://h/a/b?q", "http://H/c", "ws h:80 /c"),
        Row("ws://h/a/b?q", "HTTPS://h:8443", "wss h:8443 /"),
        Row("wss://h/a", "//other/x", "wss other:443 /x"),
        Row("ws://h:81/a/b?q", "/c", "ws h:81 /c"),
        Row("ws://h/a/b?q", "c?x", "ws h:80 /a/c?x"),
        Row("ws://h/a/b/", "c", "ws h:80 /a/b/c"),
        Row("ws://h/a/b/", "../../../c/./d/..", "ws h:80 /c/"),
        Row("ws://h/a/b?q", "?x=2", "ws h:80 /a/b?x=2"),
        Row("ws://h/a/b?q", "", "ws h:80 /a/b?q"),
        Row("ws://h/a", "/b#part", "ws h:80 /b"),
        Row("ws://h/a", "/b?at=10:30", "ws h:80 /b?at=10:30"),
        Row("ws+unix:///run/x.sock:/a", "/b", "ws+unix /run/x.sock:0 /b"),
        Row("ws://h/a", "ftp://h/", "the scheme ftp is not supported"),
        Row("ws://h/a", "ws://u:p@h/", "a user name or password in a URL is not allowed"),
        Row("ws://h/a", "/a b", "the URL has a blank, a control or a non-ASCII character; write it percent-encoded"),
        Row("ws://h/a", "/ä", "the URL has a blank, a control or a non-ASCII character; write it percent-encoded"),
        Row("ws://h/a", "mailto:x@h", "the URL has no scheme such as wss://"),
        Row("ws+unix:///run/x.sock", "//h/", "\"//h/\" is not a host name or address"),
    ]

    @Test("a Location means a URL as RFC 3986 has it", arguments: rows)
    func resolving(row: Row) throws {
        let base = try HTTPURL(parsing: row.base)
        let result: String
        do throws(HTTPURLError) {
            let url = try base.resolving(location: row.location)
            result = "\(url.scheme) \(url.host):\(url.port) \(url.pathAndQuery)"
        } catch {
            result = error.sentence
        }
        #expect(result == row.result)
    }

    @Test(
        "a parameter is added to the query once, percent-encoded",
        arguments: [
            ("ws://h", "/?t=a%20%26b"), ("ws://h/x", "/x?t=a%20%26b"), ("ws://h/x?", "/x?t=a%20%26b"),
            ("ws://h/x?v=1", "/x?v=1&t=a%20%26b"), ("ws://h/x?v=1&", "/x?v=1&t=a%20%26b"),
            ("ws://h/x?t=old", "/x?t=old"), ("ws://h/x?tt=1", "/x?tt=1&t=a%20%26b"),
        ])
    func adding(base: String, expected: String) throws {
        let url = try HTTPURL(parsing: base).addingToQuery([("t", "a &b")])
        #expect(url.pathAndQuery == expected)
        #expect(try HTTPURL(parsing: "ws://h" + url.pathAndQuery) == url)
    }
}
