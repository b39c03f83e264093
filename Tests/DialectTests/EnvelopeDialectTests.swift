import ChatModel
import Dialects
import JSONText
import Testing

@Suite("Envelope dialect")
struct EnvelopeDialectTests {
    static let fixtures = Result { try FixtureSet("envelope") }
    static var inLines: [FixtureLine] { (try? fixtures.get().inLines) ?? [] }
    static var outLines: [FixtureLine] { (try? fixtures.get().outLines) ?? [] }

    @Test("the fixtures are there")
    func fixturesAreThere() throws {
        #expect(try Self.fixtures.get().inLines.count == 61)
        #expect(try Self.fixtures.get().outLines.count == 10)
    }

    @Test("a frame decodes as its fixture says", arguments: inLines)
    func decodes(_ line: FixtureLine) throws {
        let difference = try Self.fixtures.get().verifyIn(line, EnvelopeDialect())
        #expect(difference == nil)
    }

    @Test("a command encodes as its fixture says", arguments: outLines)
    func encodes(_ line: FixtureLine) throws {
        let difference = try Self.fixtures.get().verifyOut(line, EnvelopeDialect())
        #expect(difference == nil)
    }
}
