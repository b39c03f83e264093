import Dialects
import JSONText
import Testing

@Suite("Dialect table")
struct DialectTableTests {
    @Test("every row makes a dialect of its own name, and aliases lead to it", arguments: DialectTable.names)
    func rows(_ name: String) throws {
        #expect(try #require(try DialectTable.dialect(named: name)).traits.name == name)
        for row in DialectTable.rows where row.name == name {
            for alias in row.aliases { #expect(try DialectTable.dialect(named: alias)?.traits.name == name) }
        }
    }

    @Test("only wires whose server may leave the sender out guess their confirmation", arguments: DialectTable.names)
    func guesses(_ name: String) throws {
        let dialect = try #require(try DialectTable.dialect(named: name))
        #expect(dialect.traits.confirmationIsGuess == ["envelope", "typed"].contains(name))
    }

    @Test("an unknown name makes nothing")
    func unknown() throws { #expect(try DialectTable.dialect(named: "Envelope") == nil) }
}

@Suite("dialect options")
struct DialectOptionsTests {
    @Test("an option that nobody asked for is an error that names its place and the names there are")
    func stray() throws {
        var options = DialectOptions(try JSONValue(parsing: #"{"known":1,"inner":{"knwon":2}}"#))
        _ = try options.integer("known")
        var inner = try options.table("inner")
        _ = try inner.integer("known")
        do throws(DialectOptionError) {
            try inner.finish()
            Issue.record("a stray option was taken")
        } catch {
            #expect(
                error == DialectOptionError(path: ["inner", "knwon"], sentence: "unknown option", known: ["known"]))
        }
        try options.finish()
    }

    @Test(
        "an option of another kind is an error",
        arguments: [#"{"x":true}"#, #"{"x":"1"}"#, #"{"x":1.5}"#, #"{"x":11}"#, #"{"x":[]}"#])
    func kinds(_ text: String) throws {
        var options = DialectOptions(try JSONValue(parsing: text))
        do throws(DialectOptionError) {
            _ = try options.integer("x", in: 0...10)
            Issue.record("it was taken")
        } catch {
            #expect(error == DialectOptionError(path: ["x"], sentence: "must be a whole number from 0 to 10"))
        }
    }

    @Test("null and absence are the same")
    func null() throws {
        var options = DialectOptions(try JSONValue(parsing: #"{"x":null}"#))
        #expect(try options.text("x") == nil)
        #expect(try options.flag("y") == nil)
        try options.finish()
    }
}
