import Configuration
import Glibc

@main
struct ChatBridgeMain {
    static func main() async {
        let environment = ConfigurationEnvironment.ofThisProcess()
        let status: Int32
        do throws(UsageError) {
            switch try CommandLineParser.parse(Array(Swift.CommandLine.arguments.dropFirst())) {
            case .run(let options):
                status = await ServiceCommands.run(options, environment: environment, errors: writeError)
            case .demo(let options):
                status = await ServiceCommands.demo(
                    options, environment: environment, output: writeOutput, errors: writeError)
            case .studio(let options, let port):
                status = await ServiceCommands.studio(options, port: port, output: writeOutput, errors: writeError)
            case .check(let options, let check):
                status = OfflineCommands.check(
                    options, check, environment: environment, output: writeOutput, errors: writeError)
            case .cert(let options):
                status = OfflineCommands.cert(options, output: writeOutput, errors: writeError)
            case .hashPassword(let iterations):
                status = HashPasswordCommand.run(iterations: iterations, output: writeOutput, errors: writeError) {
                    () throws(HashPasswordCommand.InputError) in
                    try HashPasswordCommand.readStandardInput(prompt: writeError)
                }
            case .version: status = OfflineCommands.version(output: writeOutput)
            case .help(let command): status = OfflineCommands.help(command, output: writeOutput)
            case .ircTables: status = OfflineCommands.ircTables(output: writeOutput)
            case .metricsTables: status = OfflineCommands.metricsTables(output: writeOutput)
            case .autobahnClient(let url, let agent, let only):
                status = await AutobahnCommands.client(url: url, agent: agent, only: only, errors: writeError)
            case .autobahnServer(let port):
                status = await AutobahnCommands.server(port: port, output: writeOutput, errors: writeError)
            }
        } catch {
            writeError(error.description)
            status = ExitCode.usage
        }
        exit(status)
    }

    private static func writeOutput(_ text: String) { _ = StateFile.write(Array(text.utf8), to: STDOUT_FILENO) }

    private static func writeError(_ text: String) { _ = StateFile.write(Array(text.utf8), to: STDERR_FILENO) }
}
