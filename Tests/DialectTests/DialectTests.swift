import Dialects
import Testing

@Suite("Dialect table")
struct DialectTableTests {
    @Test("every row makes a dialect of its own name, and aliases lead to it", arguments: DialectTable.names)
    func rows(_ name: String) throws {
        #expect(try #require(DialectTable.dialect(named: name)).traits.name == name)
        for row in DialectTable.rows where row.name == name {
            for alias in row.aliases { #expect(DialectTable.dialect(named: alias)?.traits.name == name) }
        }
    }

    @Test("an unknown name makes nothing")
    func unknown() { #expect(DialectTable.dialect(named: "Envelope") == nil) }
}
