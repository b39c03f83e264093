import ChatModel
import Dialects
import JSONText
import Testing

@Suite("Custom dialect")
struct CustomDialectTests {
    static let fixtures = Result { try FixtureSet("custom") }
    static var inLines: [FixtureLine] { (try? fixtures.get().inLines) ?? [] }
    static var outLines: [FixtureLine] { (try? fixtures.get().outLines) ?? [] }

    static func dialect() throws -> CustomDialect {
        CustomDialect(try CustomDefinition(try #require(fixtures.get().options["custom"])))
    }

    @Test("the fixtures are there")
    func fixturesAreThere() throws {
        #expect(try Self.fixtures.get().inLines.count == 38)
        #expect(try Self.fixtures.get().outLines.count == 8)
    }

    @Test("a frame decodes as its fixture says", arguments: inLines)
    func decodes(_ line: FixtureLine) throws {
        let difference = try Self.fixtures.get().verifyIn(line, Self.dialect())
        #expect(difference == nil)
    }

    @Test("a command encodes as its fixture says", arguments: outLines)
    func encodes(_ line: FixtureLine) throws {
        let difference = try Self.fixtures.get().verifyOut(line, Self.dialect())
        #expect(difference == nil)
    }
}
