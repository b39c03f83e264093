import Configuration
import Glibc
import Threads

@main
struct ChatBridgeMain {
    static func main() {
        let environment = ConfigurationEnvironment.ofThisProcess()
        ConfigurationEnvironment.remove(ServiceManagerSettings.variables)
        exit(runOnThisThread { await run(environment) })
    }

    private static func run(_ environment: ConfigurationEnvironment) async -> Int32 {
        let status: Int32
        do throws(UsageError) {
            switch try CommandLineParser.parse(commandLineWords()) {
            case .run(let options):
                status = await ServiceCommands.run(options, environment: environment.withSockets, errors: writeError)
            case .demo(let options):
                status = await ServiceCommands.demo(
                    options, environment: environment.withSockets, output: writeOutput, errors: writeError)
            case .studio(let options, let port, let database):
                status = await ServiceCommands.studio(
                    options, port: port, database: database, environment: environment, output: writeOutput,
                    errors: writeError)
            case .check(let options, let check) where check.connect:
                status = await ConnectCheck.run(
                    options, check, environment: environment, output: writeOutput, errors: writeError)
            case .check(let options, let check):
                status = OfflineCommands.check(
                    options, check, environment: environment, output: writeOutput, errors: writeError)
            case .learn(let options):
                status = await LearnCommand.run(
                    options, environment: environment, output: { writeOutput($0) }, errors: { writeError($0) })
            case .testMirror(let options, let name):
                status = OfflineCommands.testMirror(
                    name, options, environment: environment, output: writeOutput, errors: writeError)
            case .config(let options, let config):
                status = OfflineCommands.config(
                    options, config, environment: environment, output: writeOutput, errors: writeError)
            case .completion(let shell):
                writeOutput(CompletionScript.text(shell))
                status = ExitCode.ok
            case .man:
                writeOutput(ManualPage.text)
                status = ExitCode.ok
            case .cert(let options):
                status = OfflineCommands.cert(options, output: writeOutput, errors: writeError)
            case .hashPassword(let iterations):
                status = HashPasswordCommand.run(iterations: iterations, output: writeOutput, errors: writeError) {
                    () throws(HashPasswordCommand.InputError) in
                    try HashPasswordCommand.readStandardInput(prompt: writeError)
                }
            case .live(let options, let command, let socket):
                status = LiveCommands.run(
                    command, options, socket: socket, environment: environment, output: writeOutput, errors: writeError)
            case .inspectToken(let options, let file):
                status = OfflineCommands.inspectToken(
                    file, options.color, environment: environment, output: writeOutput, errors: writeError)
            case .version: status = OfflineCommands.version(output: writeOutput)
            case .help(let command): status = OfflineCommands.help(command, output: writeOutput)
            case .docTables: status = OfflineCommands.docTables(output: writeOutput)
            case .autobahnClient(let url, let agent, let only):
                status = await AutobahnCommands.client(url: url, agent: agent, only: only, errors: writeError)
            case .autobahnServer(let port):
                status = await AutobahnCommands.server(port: port, output: writeOutput, errors: writeError)
            }
        } catch {
            writeError(error.description)
            status = ExitCode.usage
        }
        return status
    }

    private static func writeOutput(_ text: String) { _ = StateFile.write(Array(text.utf8), to: STDOUT_FILENO) }

    private static func writeError(_ text: String) { _ = StateFile.write(Array(text.utf8), to: STDERR_FILENO) }
}
