import java.nio.file.*;
import org.apache.calcite.config.Lex;
import org.apache.calcite.sql.*;
import org.apache.calcite.sql.parser.SqlParser;
import org.apache.flink.sql.parser.ddl.*;
import org.apache.flink.sql.parser.impl.FlinkSqlParserImpl;
import org.apache.flink.sql.parser.validate.FlinkSqlConformance;

/** Parses statements as Flink does, and prints the columns of the tables that they make. */
public class FlinkColumns {
    public static void main(String[] args) throws Exception {
        SqlParser.Config config = SqlParser.config().withParserFactory(FlinkSqlParserImpl.FACTORY)
                .withConformance(FlinkSqlConformance.DEFAULT).withLex(Lex.JAVA).withIdentifierMaxLength(256);
        for (SqlNode n : SqlParser.create(Files.readString(Path.of(args[0])), config).parseStmtList()) {
            System.out.println("statement\t" + n.getClass().getSimpleName());
            if (!(n instanceof SqlCreateTable table)) {
                continue;
            }
            for (SqlNode c : table.getColumnList()) {
                if (c instanceof SqlTableColumn.SqlRegularColumn column) {
                    System.out.println(table.getTableName() + "\t" + column.getName().getSimple() + "\t" + column.getType());
                }
            }
        }
    }
}
