import Testing

@testable import Identities

@Suite("Display names of upstream users")
struct RealnameCountsTests {
    private static func contain(_ counts: RealnameCounts, _ name: String) -> Bool {
        Array(name.utf8).withUnsafeBytes { counts.contain($0) }
    }

    @Test(
        "a name is known while a user has it",
        arguments: ["ann", "Ann Lee", "André", "", "a name of more than fifteen bytes"])
    func counted(_ name: String) {
        var counts = RealnameCounts()
        #expect(!Self.contain(counts, name))
        counts.count(name, 1)
        counts.count(name, 1)
        counts.count(name, -1)
        #expect(Self.contain(counts, name))
        #expect(!Self.contain(counts, name + "x"))
        counts.count(name, -1)
        #expect(!Self.contain(counts, name))
    }

    @Test("two spellings of one text are one name")
    func composed() {
        var counts = RealnameCounts()
        counts.count("Andr\u{E9}", 1)
        #expect(Self.contain(counts, "Andre\u{301}"))
        counts.count("Andre\u{301}", -1)
        #expect(!Self.contain(counts, "Andr\u{E9}"))
    }
}
